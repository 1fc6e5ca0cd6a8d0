import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_USER: _ClassVar[Role]
    ROLE_ASSISTANT: _ClassVar[Role]

class ToolOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_OUTCOME_UNSPECIFIED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_OK: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_ERROR: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_DENIED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_REFUSED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_EXPIRED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_INTERRUPTED: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_UNKNOWN: _ClassVar[ToolOutcome]
    TOOL_OUTCOME_UNAVAILABLE: _ClassVar[ToolOutcome]
ROLE_UNSPECIFIED: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
TOOL_OUTCOME_UNSPECIFIED: ToolOutcome
TOOL_OUTCOME_OK: ToolOutcome
TOOL_OUTCOME_ERROR: ToolOutcome
TOOL_OUTCOME_DENIED: ToolOutcome
TOOL_OUTCOME_REFUSED: ToolOutcome
TOOL_OUTCOME_EXPIRED: ToolOutcome
TOOL_OUTCOME_INTERRUPTED: ToolOutcome
TOOL_OUTCOME_UNKNOWN: ToolOutcome
TOOL_OUTCOME_UNAVAILABLE: ToolOutcome

class Message(_message.Message):
    __slots__ = ("name", "parent", "role", "blocks", "turn", "step", "create_time", "compaction")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    role: Role
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    turn: str
    step: int
    create_time: _timestamp_pb2.Timestamp
    compaction: Compaction
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ..., turn: _Optional[str] = ..., step: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., compaction: _Optional[_Union[Compaction, _Mapping]] = ...) -> None: ...

class Compaction(_message.Message):
    __slots__ = ("kept_from", "tokens_before", "tokens_after", "results_until", "max_block_bytes")
    KEPT_FROM_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    RESULTS_UNTIL_FIELD_NUMBER: _ClassVar[int]
    MAX_BLOCK_BYTES_FIELD_NUMBER: _ClassVar[int]
    kept_from: str
    tokens_before: int
    tokens_after: int
    results_until: str
    max_block_bytes: int
    def __init__(self, kept_from: _Optional[str] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., results_until: _Optional[str] = ..., max_block_bytes: _Optional[int] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("content", "thinking", "tool_use", "tool_result", "provider_data", "refusals")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    TOOL_USE_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_DATA_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    content: _content_pb2.Content
    thinking: Thinking
    tool_use: ToolUse
    tool_result: ToolResult
    provider_data: ProviderData
    refusals: _containers.RepeatedCompositeFieldContainer[Refusal]
    def __init__(self, content: _Optional[_Union[_content_pb2.Content, _Mapping]] = ..., thinking: _Optional[_Union[Thinking, _Mapping]] = ..., tool_use: _Optional[_Union[ToolUse, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResult, _Mapping]] = ..., provider_data: _Optional[_Union[ProviderData, _Mapping]] = ..., refusals: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("model", "reason")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    model: str
    reason: str
    def __init__(self, model: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Thinking(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ToolUse(_message.Message):
    __slots__ = ("call_id", "provider_call_id", "tool", "arguments_json")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    provider_call_id: str
    tool: str
    arguments_json: str
    def __init__(self, call_id: _Optional[str] = ..., provider_call_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ToolResult(_message.Message):
    __slots__ = ("call_id", "content", "outcome", "structured_json", "mcp_error")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STRUCTURED_JSON_FIELD_NUMBER: _ClassVar[int]
    MCP_ERROR_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    outcome: ToolOutcome
    structured_json: str
    mcp_error: _mcp_pb2.McpError
    def __init__(self, call_id: _Optional[str] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., outcome: _Optional[_Union[ToolOutcome, str]] = ..., structured_json: _Optional[str] = ..., mcp_error: _Optional[_Union[_mcp_pb2.McpError, _Mapping]] = ...) -> None: ...

class ProviderData(_message.Message):
    __slots__ = ("provider", "data")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    provider: str
    data: bytes
    def __init__(self, provider: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...
