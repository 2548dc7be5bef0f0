"""The error that decoders raise."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes are not a message of the given API and version.

    :ivar message: the message or header that was decoded, for instance ``"JoinGroupRequest"``.
    :ivar api_version: the version it was decoded as; None if there is none.
    :ivar field: path of the field, for instance ``"members[3].metadata"``; "" if the error concerns the whole message.
    :ivar position: byte offset of that field in the frame.
    :ivar reason: what is wrong with it.
    """

    def __init__(self, message: str, api_version: int | None, field: str, position: int, reason: str) -> None:
        self.message = message
        self.api_version = api_version
        self.field = field
        self.position = position
        self.reason = reason
        super().__init__(message, api_version, field, position, reason)

    def __str__(self) -> str:
        version = "" if self.api_version is None else f" v{self.api_version}"
        field = f"{self.field} " if self.field else ""
        return f"{self.message}{version}: {field}at byte {self.position}: {self.reason}"
