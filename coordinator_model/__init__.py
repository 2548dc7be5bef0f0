"""The Kafka group protocol and its coordinator, as pure Python.

Nothing in this package performs I/O, reads a clock or logs: frames and capture times go in, findings come out. The same code
therefore runs inside a streaming job and over a capture file on a laptop, and gives the same answer in both.
"""
