"""What the messages and their fields mean: the words that go with the layouts, in our own."""

from __future__ import annotations


def class_note(message: str, struct: str) -> list[str]:
    """Docstring lines of a message class."""
    return [f"{message}." if message == struct else f"Part of {message}."]


def field_note(message: str, struct: str, field: str, versions: str) -> str:
    """One sentence on a field."""
    return f"Versions {versions}."
