"""The error of everything that is checked before a command begins its work."""


class SetupError(RuntimeError):
    """What was asked for cannot be done; the message is a sentence that names what is wrong and the remedy."""
