"""A consumer as a capture shows it."""

from __future__ import annotations

from coordinator_model import wire
from tests.coordinator_model.conversation import ASSIGNED, SUBSCRIBED
from tests.streaming.mirror.wires import BROKER, CLIENT, Connection, Segment


def life(
    segments: list[Segment],
    group: str,
    *,
    client: tuple[str, int] = CLIENT,
    broker: tuple[str, int] = BROKER,
    violation: bool = False,
    beats: int = 5,
) -> Connection:
    """A consumer's life in a group of its own; with a violation, the coordinator accepts a generation that never was."""
    line = Connection(segments, client=client, broker=broker).open()
    member_id = f"app-1-{group}"
    asked = {
        "group_id": group,
        "session_timeout_ms": 6_000,
        "rebalance_timeout_ms": 12_000,
        "protocol_type": "consumer",
        "protocols": (wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED),),
    }
    line.ask(wire.JoinGroupRequest(**asked), 9, 0)
    line.answer(wire.JoinGroupResponse(error_code=79, generation_id=-1, member_id=member_id), 9, 0)
    line.ask(wire.JoinGroupRequest(**asked, member_id=member_id), 9, 1)
    line.wait(3_000)
    roster = (wire.JoinGroupResponseMember(member_id=member_id, metadata=SUBSCRIBED),)
    joined = {
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": member_id,
        "member_id": member_id,
    }
    line.answer(wire.JoinGroupResponse(**joined, members=roster), 9, 1)
    known = {"group_id": group, "generation_id": 1, "member_id": member_id}
    assigned = (wire.SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNED),)
    line.ask(wire.SyncGroupRequest(**known, protocol_type="consumer", protocol_name="range", assignments=assigned), 5, 2)
    line.answer(wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=ASSIGNED), 5, 2)
    for number in range(3, 3 + beats):
        line.wait(2_000)
        line.ask(wire.HeartbeatRequest(**{**known, "generation_id": 9 if violation and number == beats else 1}), 4, number)
        line.answer(wire.HeartbeatResponse(), 4, number)
    line.ask(wire.LeaveGroupRequest(group_id=group, members=(wire.LeaveGroupRequestMemberIdentity(member_id=member_id),)), 5, 99)
    line.answer(wire.LeaveGroupResponse(members=(wire.LeaveGroupResponseMemberResponse(member_id=member_id),)), 5, 99)
    line.close()
    return line
