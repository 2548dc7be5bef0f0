"""The error of everything that is checked before a command begins its work, and the words of the system's own."""


class SetupError(RuntimeError):
    """What was asked for cannot be done; the message is a sentence that names what is wrong and the remedy."""


def why_not(error: OSError) -> str:
    """Return what the system says, as the end of a sentence."""
    return (error.strerror or str(error)).lower()
