"""What can go wrong between bytes and messages."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes that are not the message they were said to be.

    :ivar message: what was being read, for instance ``"JoinGroupRequest"``.
    :ivar api_version: the version it was read as; None where there is none.
    :ivar field: path of the field, for instance ``"members[3].metadata"``; "" where it concerns the whole.
    :ivar position: byte offset in the frame at which that field begins.
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
