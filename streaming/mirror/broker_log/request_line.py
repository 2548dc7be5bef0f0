"""Lines of ``kafka.request.logger``: an exchange that is over, with the frames that it was made of.

The line is written when the response has been sent. When the broker took the request follows from the time that it took.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, NamedTuple

from coordinator_model.groups.requests import BESIDE_MEMBERSHIP
from coordinator_model.lost_frames import FOLLOWED
from coordinator_model.wire import groups_named
from coordinator_model.wire.constants import MEMBER_ID_REQUIRED, NONE, REBALANCE_IN_PROGRESS
from coordinator_model.wire.encoder import encode_request, encode_response
from coordinator_model.wire.layouts import REQUESTS, RESPONSES, Layout
from coordinator_model.wire.messages import HeartbeatResponse, JoinGroupResponse, OffsetCommitResponse, SyncGroupResponse
from streaming.mirror.broker_log.coordinator_lines import MARK, CoordinatorLine, coordinator_line, is_begun, names_its_logger
from streaming.mirror.broker_log.from_json import message_of
from streaming.mirror.broker_log.scan import API_KEY, REQUEST
from streaming.mirror.broker_log.times import LogTime, time_in, time_of
from streaming.mirror.topics import METADATA, Topic, topic_of

_PREFIX_AT_MOST: Final = 2_000
_MESSAGE_FIELDS: Final = ("message", "msg", "log", "@message", "MESSAGE", "textPayload", "line")
"""Of JSON layouts, Docker, CloudWatch, journalctl -o json, Google Cloud Logging, and logcli -o jsonl of Loki."""

_FIELD_OF_ITS_OWN: Final = re.compile(r'\s*("(?:message|textPayload)" ?: ?".*"),?\s*', re.DOTALL)
"""A line of JSON that is printed for people, as ``aws logs filter-log-events`` and ``gcloud logging read`` print it."""

_MARGIN_US: Final = 1_000
"""The clock of the line is read a little after that of the measured times."""

_LONGEST_MS: Final = 7 * 86_400_000

_API_KEY_IN: Final = re.compile(r'"requestApiKey" ?: ?(\d{1,5})\b')
_GROUP_IN: Final = re.compile(r'"(?:groupId|key)" ?: ?("(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*")')
_CHANGING: Final = FOLLOWED - BESIDE_MEMBERSHIP

_decode = json.JSONDecoder().raw_decode


class Passed(NamedTuple):
    """A line of no group: the broker was alive, and logged requests."""

    at_us: int


class LoggedTopics(NamedTuple):
    """Topics, as a Metadata response describes them."""

    at_us: int
    topics: list[Topic]


class Logged(NamedTuple):
    """A request and its response."""

    at_us: int  #: when it was over, microseconds since the epoch
    received_us: int
    connection: str
    api_key: int
    api_version: int
    request: bytes  #: the frame; empty if it came before the logger was switched on, which then shows the answer alone
    response: bytes  #: the frame; empty where the client wanted none
    member: str  #: id of the member that asks, or that joins; empty if it names none
    next_may_wait: bool  #: the coordinator may let the client's next request wait
    groups: tuple[str, ...]
    software: str
    principal: str  #: with the listener, ``User:billing by SCRAM (SASL_SSL)``
    step_us: int  #: how coarse its times are; 0 for milliseconds, which the margin covers


class Unread(NamedTuple):
    """A request line that cannot be read whole, of an API that may change who is a member or what is committed."""

    at_us: int  #: when it was written; 0 if that is not known
    groups: tuple[str, ...]  #: those that its beginning names; empty if it ends before it names one


class SetBack(NamedTuple):
    """Clocks were set back before the next line."""

    at_us: int  #: its time


LogEntry = Logged | LoggedTopics | Passed | CoordinatorLine | Unread | SetBack


class UnreadableLineError(ValueError):
    """A line says something else than Kafka would; the message is a reason that can be counted."""


class RequestLines:
    """Reads the lines of brokers.

    :ivar counts: reasons why lines could not be read, and fields that are not known.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.unknown_fields: Counter[str] = Counter()
        self._ended = 0  # lines of coordinators with the name of their logger at the end
        self._unended = 0  # those without, of which nothing could be read
        self._begun = 0  # those of them that only begin

    def read(self, line: bytes) -> LogEntry | None:
        """Return the entry of a line, :class:`Unread` or None if it cannot be read, which is counted."""
        if API_KEY not in line:
            return self._of_coordinator(line)
        try:
            time, fields = _split(line)
            return self._entry(time, fields)
        except UnreadableLineError as error:
            self.counts[str(error)] += 1
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            self.counts["contradict themselves"] += 1
        except RecursionError:
            self.counts["are nested too deeply"] += 1
        return _unread(line)

    def _entry(self, time: LogTime, fields: dict[str, Any]) -> LogEntry | None:
        header = fields["requestHeader"]
        key, version = _integer(header["requestApiKey"]), _integer(header["requestApiVersion"])
        if fields.get("isForwarded") or (key not in REQUESTS and key != METADATA):
            return Passed(time.at_us)
        if key == METADATA:
            return LoggedTopics(time.at_us, _topics(fields["response"]))
        took_us = int(_number(fields["totalTimeMs"]) * 1_000)
        if not 0 <= took_us <= _LONGEST_MS * 1_000:
            raise UnreadableLineError("have an impossible duration")
        connection = fields["connection"]
        if not isinstance(connection, str) or not connection:
            raise UnreadableLineError("name no connection")
        known = self._known_version(REQUESTS[key], version)
        correlation_id = _integer(header["correlationId"])
        request, frame = None, b""
        if fields["request"] is not None:
            request = message_of(REQUESTS[key], fields["request"], known, self.unknown_fields)
            frame = encode_request(request, api_version=known, correlation_id=correlation_id, client_id=header.get("clientId"))
        answer, may_wait = b"", False
        member = _member(request)
        if fields.get("response"):
            response = message_of(RESPONSES[key], fields["response"], known, self.unknown_fields)
            answer = encode_response(response, api_version=known, correlation_id=correlation_id)
            may_wait = _next_may_wait(response)
            member = member or _member(response)
        return Logged(
            at_us=time.at_us,
            received_us=time.at_us - took_us - _MARGIN_US,
            connection=connection,
            api_key=key,
            api_version=known,
            request=frame,
            response=answer,
            member=member,
            next_may_wait=may_wait,
            groups=() if request is None else groups_named(request),
            software=_software(fields.get("clientInformation")),
            principal=_principal(fields),
            step_us=time.step_us if time.step_us > _MARGIN_US else 0,
        )

    def _of_coordinator(self, line: bytes) -> CoordinatorLine | None:
        """What a coordinator says of a group, in a line that is no request's."""
        try:
            text, time = _message_in(line.decode("utf-8", "replace"))
        except (UnreadableLineError, RecursionError):
            self._unended += 1
            self._begun += 1
            return None
        at = max(text.find(MARK.decode()), 0)
        time = time or time_in(text[max(0, at - _PREFIX_AT_MOST) : at])
        said = text[at:].rstrip()
        entry = None if time is None else coordinator_line(said, time)
        if names_its_logger(said):
            self._ended += 1
        elif entry is None:
            self._unended += 1
            self._begun += is_begun(said)
        return entry

    @property
    def cut_coordinator_lines(self) -> int:
        """How many lines of coordinators are cut: all without a logger if others have one, else those that only begin."""
        return self._unended if self._ended else self._begun

    def _known_version(self, layout: Layout, version: int) -> int:
        if version > layout.versions.last:
            self.unknown_fields[f"{layout.name} v{version}"] += 1
            return layout.versions.last
        return version


def _unread(line: bytes) -> Unread | None:
    """Return what the beginning of a line says: Kafka writes API and request first, response and connection last."""
    text = line.decode("utf-8", "replace")
    if text.lstrip()[:1] in {"{", '"'}:
        text = text.replace('\\"', '"')  # the message is a string in an object
    at = text.find(REQUEST.decode())
    key = _API_KEY_IN.search(text, max(at, 0))
    if at < 0 or key is None or int(key[1]) not in _CHANGING:
        return None
    time = time_in(text[max(0, at - _PREFIX_AT_MOST) : at])
    named = _GROUP_IN.search(text, key.end())
    return Unread(0 if time is None else time.at_us, () if named is None else _group_of(named[1]))


def _group_of(text: str) -> tuple[str, ...]:
    """Return the group that a JSON string names; nothing if it is no name that a group can have."""
    try:
        group: str = json.loads(text)
        group.encode()
    except ValueError:
        return ()
    return (group,)


def _message_in(text: str) -> tuple[str, LogTime | None]:
    """Return the message of a line, and the time that is beside it where the line is JSON."""
    own = _FIELD_OF_ITS_OWN.fullmatch(text) if text.lstrip()[:1] == '"' else None
    if own is not None:
        text = f"{{{own[1]}}}"
    if text.lstrip()[:1] != "{":
        return text, None
    fields = _object(text, text.index("{"))
    message = next((found for name in _MESSAGE_FIELDS if isinstance(found := fields.get(name), str)), "")
    return message.encode("utf-8", "replace").decode(), time_of(fields)  # half a surrogate pair is no text


def _split(line: bytes) -> tuple[LogTime, dict[str, Any]]:
    """The time of a line, and the object behind ``Completed request:``."""
    text = line.decode("utf-8", "replace")
    text, time = _message_in(text)
    at = text.find(REQUEST.decode())
    if at < 0:
        raise UnreadableLineError("are no request line, though they name an API")
    time = time or time_in(text[max(0, at - _PREFIX_AT_MOST) : at])
    if time is None:
        raise UnreadableLineError("have no date and time before the message")
    return time, _object(text, at + len(REQUEST))


def _object(text: str, at: int) -> dict[str, Any]:
    while text[at : at + 1] == " ":
        at += 1
    try:
        found, _ = _decode(text, at)
    except ValueError:
        raise UnreadableLineError("are cut or interleaved with others") from None
    if not isinstance(found, dict):
        raise UnreadableLineError("hold no object")
    return found


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableLineError("have a value of the wrong type")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UnreadableLineError("have a value of the wrong type")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _principal(fields: dict[str, Any]) -> str:
    """As whom the client is authenticated, and how; empty for who is not."""
    principal, listener = _text(fields.get("principal")), _text(fields.get("listener"))
    if not principal or principal == "User:ANONYMOUS":
        return ""
    protocol = _text(fields.get("securityProtocol"))
    by = f"{listener} ({protocol})" if protocol and protocol != listener else listener
    return f"{principal} by {by}" if by else principal


def _software(fields: Any) -> str:
    """Name and version, as the tap has it of ApiVersions; brokers call "unknown" what was not announced."""
    if not isinstance(fields, dict):
        return ""
    parts = (_text(fields.get("softwareName")), _text(fields.get("softwareVersion")))
    return " ".join(part for part in parts if part and part != "unknown")


def _member(body: Any) -> str:
    return str(getattr(body, "member_id", None) or "")


def _next_may_wait(response: Any) -> bool:
    """Whether a JoinGroup may follow, which waits for the others, or a SyncGroup, which waits for the leader's."""
    match response:
        case HeartbeatResponse():
            return response.error_code == REBALANCE_IN_PROGRESS
        case OffsetCommitResponse():
            return any(one.error_code == REBALANCE_IN_PROGRESS for topic in response.topics for one in topic.partitions)
        case JoinGroupResponse():
            if response.error_code == NONE:
                return response.leader != response.member_id  # a leader's SyncGroup does not wait
            return response.error_code in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS)
        case SyncGroupResponse():
            return response.error_code in (NONE, REBALANCE_IN_PROGRESS)
        case _:
            return False


def _topics(response: Any) -> list[Topic]:
    found = []
    for topic in response.get("topics") or ():
        name, id_, partitions = topic.get("name"), topic.get("topicId"), topic.get("partitions")
        has_id = isinstance(id_, str) and len(id_) == 22 and id_.strip("A")
        if isinstance(name, str) and isinstance(partitions, list):
            found.append(topic_of(_integer(topic["errorCode"]), name, id_ if has_id else "", len(partitions)))
    return [topic for topic in found if topic is not None]
