import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.session.v1 import message_pb2 as _message_pb2
from fairlead.session.v1 import session_pb2 as _session_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TurnState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_STATE_UNSPECIFIED: _ClassVar[TurnState]
    TURN_STATE_QUEUED: _ClassVar[TurnState]
    TURN_STATE_RUNNING: _ClassVar[TurnState]
    TURN_STATE_WAITING: _ClassVar[TurnState]
    TURN_STATE_COMPLETE: _ClassVar[TurnState]
    TURN_STATE_PARTIAL: _ClassVar[TurnState]
    TURN_STATE_FAILED: _ClassVar[TurnState]
    TURN_STATE_INTERRUPTED: _ClassVar[TurnState]
TURN_STATE_UNSPECIFIED: TurnState
TURN_STATE_QUEUED: TurnState
TURN_STATE_RUNNING: TurnState
TURN_STATE_WAITING: TurnState
TURN_STATE_COMPLETE: TurnState
TURN_STATE_PARTIAL: TurnState
TURN_STATE_FAILED: TurnState
TURN_STATE_INTERRUPTED: TurnState

class Turn(_message.Message):
    __slots__ = ("name", "state", "error", "limits", "create_time", "start_time", "end_time", "steps", "usage", "final_text", "trace_id", "after_seq", "model", "steered_into", "output_json", "schedule", "user", "head", "shortened", "call", "call_result", "trigger", "subagent_usage", "tool_errors")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    FINAL_TEXT_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STEERED_INTO_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    SHORTENED_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_USAGE_FIELD_NUMBER: _ClassVar[int]
    TOOL_ERRORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: TurnState
    error: TurnError
    limits: TurnLimits
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    steps: int
    usage: _session_pb2.Usage
    final_text: str
    trace_id: str
    after_seq: int
    model: str
    steered_into: str
    output_json: str
    schedule: str
    user: str
    head: str
    shortened: bool
    call: _message_pb2.ToolUse
    call_result: _message_pb2.ToolResult
    trigger: str
    subagent_usage: _session_pb2.Usage
    tool_errors: int
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[TurnState, str]] = ..., error: _Optional[_Union[TurnError, _Mapping]] = ..., limits: _Optional[_Union[TurnLimits, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., steps: _Optional[int] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., final_text: _Optional[str] = ..., trace_id: _Optional[str] = ..., after_seq: _Optional[int] = ..., model: _Optional[str] = ..., steered_into: _Optional[str] = ..., output_json: _Optional[str] = ..., schedule: _Optional[str] = ..., user: _Optional[str] = ..., head: _Optional[str] = ..., shortened: _Optional[bool] = ..., call: _Optional[_Union[_message_pb2.ToolUse, _Mapping]] = ..., call_result: _Optional[_Union[_message_pb2.ToolResult, _Mapping]] = ..., trigger: _Optional[str] = ..., subagent_usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., tool_errors: _Optional[int] = ...) -> None: ...

class TurnError(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class TurnLimits(_message.Message):
    __slots__ = ("max_steps", "max_wall_time", "max_output_tokens", "max_tokens", "max_cost_nano_usd", "soft_percent")
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_NANO_USD_FIELD_NUMBER: _ClassVar[int]
    SOFT_PERCENT_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    max_wall_time: _duration_pb2.Duration
    max_output_tokens: int
    max_tokens: int
    max_cost_nano_usd: int
    soft_percent: int
    def __init__(self, max_steps: _Optional[int] = ..., max_wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_output_tokens: _Optional[int] = ..., max_tokens: _Optional[int] = ..., max_cost_nano_usd: _Optional[int] = ..., soft_percent: _Optional[int] = ...) -> None: ...
