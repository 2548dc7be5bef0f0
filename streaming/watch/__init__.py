"""The monitor in one process, without Spark: an input, the engine, and what it hands on to the screen, the page, metrics and alerts."""
