#!/usr/bin/env python3
"""What ``spark-submit`` is given: ``rebalance-monitor`` as a Spark application, with the same arguments (``docs/deploying.md``)."""

from streaming.cli import main

if __name__ == "__main__":
    main()
