"""Everything of rebalance-monitor that touches the outside: capture, the Spark job, data quality, sinks, demo and command line."""
