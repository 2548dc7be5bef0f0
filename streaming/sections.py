"""What the sections of the configuration share: they are immutable, refuse unknown keys, and take secrets from elsewhere.

The trap: a section that refused nothing would leave a mistyped key without effect, and nobody would know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr


class Section(BaseModel):
    """A table of the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _existing_file(path: Path) -> Path:
    if not path.expanduser().is_file():
        raise ValueError(f"there is no file {path}")
    return path.expanduser()


ExistingFile = Annotated[Path, AfterValidator(_existing_file)]


def secret(value: SecretStr | None, file: Path | None) -> str | None:
    """What an operator gave by value (from the environment) or by file; None when neither."""
    if value is not None:
        return value.get_secret_value()
    return file.read_text().strip() if file else None
