"""Everything that touches the outside: capturing frames, the Spark job, data quality, sinks, the demo and the command line."""
