"""Kafka's group protocol on the wire: frames to messages and back, for every version from Kafka 0.9 to 4.4.

    >>> frame = decode(raw, request=True, api_key=12, api_version=4)
    >>> frame.header.client_id, frame.body.group_id, frame.body.generation_id
    ('billing-1', 'billing', 7)

A response contains neither its API nor its version; the capturer must provide them. If they are wrong, the bytes may still decode, to
nonsense. :func:`decode` refuses nearly all such frames, because a message must consume all bytes exactly.
"""

from coordinator_model.wire import messages
from coordinator_model.wire.decoder import API_NAMES, decode, decode_request_header, supported_versions
from coordinator_model.wire.embedded import (
    CONNECT,
    CONSUMER,
    STREAMS_ASSIGNOR,
    decode_assignment,
    decode_connect_assignment,
    decode_connect_worker_state,
    decode_member_assignment,
    decode_metadata,
    decode_streams_assignment,
    decode_streams_subscription,
    decode_subscription,
    encode_assignment,
    encode_connect_assignment,
    encode_connect_worker_state,
    encode_streams_subscription,
    encode_subscription,
    read_consumer_assignment,
    read_consumer_subscription,
    read_member_assignment,
    read_metadata,
)
from coordinator_model.wire.encoder import encode_request, encode_response
from coordinator_model.wire.error_codes import ERROR_CODES, ErrorCode, error_meaning, error_name, may_be_an_error
from coordinator_model.wire.errors import DecodeError
from coordinator_model.wire.message import Frame, Header, Message, Request, Response, Struct
from coordinator_model.wire.messages import *  # noqa: F403 - the messages are this package's vocabulary
from coordinator_model.wire.naming import groups_named

__all__ = [
    "API_NAMES",
    "CONNECT",
    "CONSUMER",
    "ERROR_CODES",
    "STREAMS_ASSIGNOR",
    "DecodeError",
    "ErrorCode",
    "Frame",
    "Header",
    "Message",
    "Request",
    "Response",
    "Struct",
    "decode",
    "decode_assignment",
    "decode_connect_assignment",
    "decode_connect_worker_state",
    "decode_member_assignment",
    "decode_metadata",
    "decode_request_header",
    "decode_streams_assignment",
    "decode_streams_subscription",
    "decode_subscription",
    "encode_assignment",
    "encode_connect_assignment",
    "encode_connect_worker_state",
    "encode_request",
    "encode_response",
    "encode_streams_subscription",
    "encode_subscription",
    "error_meaning",
    "error_name",
    "groups_named",
    "may_be_an_error",
    "read_consumer_assignment",
    "read_consumer_subscription",
    "read_member_assignment",
    "read_metadata",
    "supported_versions",
]
__all__ += messages.__all__
