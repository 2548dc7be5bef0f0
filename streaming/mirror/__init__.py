"""Ways into the mirror topic, and out of it."""

from typing import Final

DEFAULT_TOPIC: Final = "rebalance-mirror"
