"""Random records."""

from __future__ import annotations

from hypothesis import strategies as st

from coordinator_model.wire.record import (
    Kind,
    MirrorRecord,
)

records = st.builds(
    MirrorRecord,
    partition=st.integers(0, 100),
    offset=st.integers(0, 2**63 - 1),
    group=st.none() | st.text(),
    kind=st.sampled_from(Kind),
    at_us=st.integers(0, 2**62),
    cluster=st.text(),
    broker=st.text(),
    connection=st.text(),
    exchange=st.integers(-1, 2**31),
    api_key=st.integers(-1, 200),
    api_version=st.integers(-1, 100),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(),
    client_address=st.text(),
    client_software=st.text(),
    cut_bytes=st.integers(0, 2**31),
    capped_bytes=st.integers(0, 2**31),
    step_us=st.integers(0, 10**6),
    queued_behind=st.integers(0, 1000),
    frame=st.binary(),
)
