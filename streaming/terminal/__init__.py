"""What the monitor publishes, shown in a terminal: tables for all commands that print it, and the live view of ``top``."""
