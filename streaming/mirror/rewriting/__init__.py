"""Puts the tap in the place of the brokers in their answers, for clusters whose advertised addresses one cannot set."""
