"""What the monitor knows, as Prometheus metrics; ``docs/metrics.md`` says what each one means.

``table`` names every metric. ``board`` keeps what the result topics say, ``feed`` reads them, ``collector`` turns the board into samples
when somebody scrapes, ``endpoint`` serves them. Everything comes from the topics that the job writes anyway: the models live in Spark's
workers, and a scrape must never wait for one.
"""
