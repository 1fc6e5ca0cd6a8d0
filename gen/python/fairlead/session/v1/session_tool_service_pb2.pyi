from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import event_pb2 as _event_pb2
from fairlead.session.v1 import session_service_pb2 as _session_service_pb2
from fairlead.session.v1 import turn_pb2 as _turn_pb2
from fairlead.tools.v1 import tool_pb2 as _tool_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListSessionToolsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSessionToolsResponse(_message.Message):
    __slots__ = ("tools", "next_page_token")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[_tool_pb2.Tool]
    next_page_token: str
    def __init__(self, tools: _Optional[_Iterable[_Union[_tool_pb2.Tool, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CallToolRequest(_message.Message):
    __slots__ = ("parent", "tool", "arguments_json", "on_active", "limits", "request_id", "after_seq")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ON_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    parent: str
    tool: str
    arguments_json: str
    on_active: _session_service_pb2.OnActive
    limits: _turn_pb2.TurnLimits
    request_id: str
    after_seq: int
    def __init__(self, parent: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., on_active: _Optional[_Union[_session_service_pb2.OnActive, str]] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., request_id: _Optional[str] = ..., after_seq: _Optional[int] = ...) -> None: ...

class CallToolResponse(_message.Message):
    __slots__ = ("event", "progress", "turn")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    event: _event_pb2.Event
    progress: _session_service_pb2.Progress
    turn: _turn_pb2.Turn
    def __init__(self, event: _Optional[_Union[_event_pb2.Event, _Mapping]] = ..., progress: _Optional[_Union[_session_service_pb2.Progress, _Mapping]] = ..., turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ...) -> None: ...
