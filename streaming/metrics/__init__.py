"""Prometheus metrics of the monitor, of the tap and of the notifier, and their probes; ``docs/metrics.md`` explains each one.

``table`` defines every metric. ``feed`` reads the result topics into ``metrics_state``, ``collector`` makes samples of that state at each
scrape, and ``endpoint`` serves them. The result topics are the only source for groups, because the models are in Spark's workers and a
scrape must not wait for a worker.
"""
