"""Which rows of the protocol's table a rule judges by: those that tell the lawful answer from what the rule finds."""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
G-01 H10 Y9 C15
G-02 Y9 H10 C15 T14
G-03 Y12 Y13 Y19 H11 H13 H14 C17 T15
G-04 J22 J25 J27
G-07 H10 Y9 C15
G-12 Y11 H11
M-01 H7 Y8 C14
M-02 Y8 H7 C14 T13
M-03 Y12 Y13 Y19 H11 H13 H14 C17 T15
M-04 J19
M-05 J16
M-06 J14 J15 J16
M-10 L9 L10
M-11 J20 Y7 H6 H8 C13 T12
M-12 J2
S-02 H6 Y7 C13
S-03 J20 Y7 H6 C13 T12
S-04 J9
S-09 Y12 Y13 Y19 H11 H13 H14 C17 T15
R-04 Y14
T-02 H7 Y8
T-03 H14 Y13 Y19 C17
P-08 Y12 Y14 H10
O-02 C13 C14 C15 T12 T13 T14
O-03 C16
O-04 C9 C14
C-02 J27
C-03 Y14
C-07 Y2 Y3
"""

ROWS_OF: Final[dict[str, tuple[str, ...]]] = {
    rule: tuple(rows) for rule, *rows in (line.split() for line in _TABLE.strip().splitlines())
}
"""Id of a rule → names of rows."""
