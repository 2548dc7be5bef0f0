"""The base class and the value types of the configuration's sections, and the readers of secrets and private keys.

A section is immutable and rejects unknown keys: otherwise a mistyped key would have no effect and cause no error. The content of files is
checked here, because Kafka clients report an empty password or an unsupported key format late and unclearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, SecretStr


class Section(BaseModel):
    """A table of the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _not_empty(path: object) -> object:
    if path == "":
        raise ValueError("it is empty; set a path, or remove the key")
    return path


def _local(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:  # ~somebody
        raise ValueError(f"{path}: {str(error).lower()}") from None


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _readable(path: Path) -> Path:
    _text_of(path)
    return path


def _secret_file(path: Path) -> Path:
    if not _text_of(path).strip():
        raise ValueError(f"{path} is empty")
    return path


def _certificates(path: Path) -> Path:
    if "-----BEGIN CERTIFICATE-----" not in _text_of(path):
        raise ValueError(f"{path} holds no certificate in PEM (a block that begins with -----BEGIN CERTIFICATE-----)")
    return path


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file") from None


def _in_words(value: object) -> object:
    """Return a client property as text; TOML and JSON files may have a number or a boolean."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


LocalPath = Annotated[Path, AfterValidator(_local), BeforeValidator(_not_empty)]
ExistingFile = Annotated[LocalPath, AfterValidator(_existing_file), AfterValidator(_readable)]
SecretFile = Annotated[LocalPath, AfterValidator(_existing_file), AfterValidator(_secret_file)]
CertificateFile = Annotated[LocalPath, AfterValidator(_existing_file), AfterValidator(_certificates)]
ClientProperty = Annotated[str, BeforeValidator(_in_words)]


def plain_key(file: Path, password: str | None) -> str:
    """Return a private key decrypted, in PKCS#8: the only format that every Java release reads.

    Not every Java release supports PBES2, which current tools encrypt keys with.

    :raises ValueError: when the file is not a private key, or the password does not decrypt it.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - 6 MiB, and most configurations name no key
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    written = _text_of(file).encode()
    if b"PRIVATE KEY-----" not in written:
        raise ValueError(f"{file} holds no private key in PEM (a block that begins with -----BEGIN PRIVATE KEY-----)")
    locked = b"ENCRYPTED" in written
    if locked and password is None:
        raise ValueError(f"{file} is encrypted: give its password")
    try:
        key = load_pem_private_key(written, password.encode() if locked and password is not None else None)
    except (ValueError, UnsupportedAlgorithm):
        opened = "opened with the password given" if locked else "read"
        raise ValueError(f"the private key in {file} cannot be {opened}") from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def secret(value: SecretStr | None, file: Path | None) -> str | None:
    """Return a secret given by value (from the environment) or by file; None if neither is set.

    Line ends at the end of the file are removed; other white space is kept, because it may be part of the secret.
    """
    if value is not None:
        return value.get_secret_value()
    return file.read_text().rstrip("\r\n") if file else None
