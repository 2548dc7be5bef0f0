"""Properties of librdkafka that a command line gives, as arguments or in files, for every command that has such options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streaming.config.keys import is_secret_property
from streaming.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_secrets(given: Iterable[str]) -> None:
    """Check that no argument contains a secret.

    :raises SetupError: when one does; the message names it.
    """
    for word in given:
        key, equals, value = word.partition("=")
        if equals and is_secret_property(key.strip(), value):
            raise SetupError(
                f"--producer-config {key.strip()}=…: every user of this machine can see a command line; write the line to a file "
                "that only you can read, and pass --producer-config FILE"
            )


def client_options(bootstrap_servers: str, given: Iterable[str] | None) -> dict[str, Any]:
    """Return the properties from ``key=value`` arguments and from files of such lines (``#`` begins a comment), with the servers.

    :raises SetupError: when an argument or a line is not a property, or an argument contains a secret; the message names it.
    """
    words = list(given or ())
    refuse_secrets(words)
    options: dict[str, Any] = {}
    for word in words:
        if "=" in word:
            key, _, value = word.partition("=")
            options[key.strip()] = value.strip()
            continue
        try:
            lines = Path(word).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"--producer-config {word}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            key, equals, value = line.partition("=")
            if not equals:
                raise SetupError(f"--producer-config {word}, line {number}: not a property, write key=value")
            options[key.strip()] = value.strip()
    return options | {"bootstrap.servers": bootstrap_servers}
