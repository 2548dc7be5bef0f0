"""Addresses to listen on, as options and the configuration name them; apart from the sections, which need pydantic."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ADDRESS: Final = re.compile(r"(?P<host>[^:\[\]\s]+|\[[0-9a-fA-F:.%]+\]):(?P<port>\d{1,5})")


class Address(NamedTuple):
    host: str
    port: int  #: 0 for any free port


def parse_address(text: str) -> Address:
    """Parse ``host:port``; an IPv6 address is in brackets.

    :raises ValueError: when the text is not such an address.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise ValueError("the address must be host:port, such as 127.0.0.1:19930, 0.0.0.0:19930 or [::1]:19930")
    return Address(found["host"].strip("[]"), int(found["port"]))
