import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from fairlead.session.v1 import approval_pb2 as _approval_pb2
from fairlead.session.v1 import event_pb2 as _event_pb2
from fairlead.session.v1 import message_pb2 as _message_pb2
from fairlead.session.v1 import session_pb2 as _session_pb2
from fairlead.session.v1 import turn_pb2 as _turn_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OnActive(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_ACTIVE_UNSPECIFIED: _ClassVar[OnActive]
    ON_ACTIVE_QUEUE: _ClassVar[OnActive]
    ON_ACTIVE_REJECT: _ClassVar[OnActive]
    ON_ACTIVE_INTERRUPT: _ClassVar[OnActive]
    ON_ACTIVE_STEER: _ClassVar[OnActive]
    ON_ACTIVE_ROLLBACK: _ClassVar[OnActive]

class ExportFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPORT_FORMAT_UNSPECIFIED: _ClassVar[ExportFormat]
    EXPORT_FORMAT_JSONL: _ClassVar[ExportFormat]
    EXPORT_FORMAT_ARCHIVE: _ClassVar[ExportFormat]
ON_ACTIVE_UNSPECIFIED: OnActive
ON_ACTIVE_QUEUE: OnActive
ON_ACTIVE_REJECT: OnActive
ON_ACTIVE_INTERRUPT: OnActive
ON_ACTIVE_STEER: OnActive
ON_ACTIVE_ROLLBACK: OnActive
EXPORT_FORMAT_UNSPECIFIED: ExportFormat
EXPORT_FORMAT_JSONL: ExportFormat
EXPORT_FORMAT_ARCHIVE: ExportFormat

class CreateSessionRequest(_message.Message):
    __slots__ = ("session", "session_id", "request_id", "replace", "limits")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    session_id: str
    request_id: str
    replace: bool
    limits: _turn_pb2.TurnLimits
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., session_id: _Optional[str] = ..., request_id: _Optional[str] = ..., replace: _Optional[bool] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ...) -> None: ...

class CreateSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "user", "labels", "state", "key", "archived", "oldest_first", "parent")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    user: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    state: _session_pb2.SessionState
    key: str
    archived: bool
    oldest_first: bool
    parent: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[_session_pb2.SessionState, str]] = ..., key: _Optional[str] = ..., archived: _Optional[bool] = ..., oldest_first: _Optional[bool] = ..., parent: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[_session_pb2.Session]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[_session_pb2.Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateSessionRequest(_message.Message):
    __slots__ = ("name", "title", "labels", "remove_labels", "metadata_json", "turn_options", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    TURN_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    title: str
    labels: _containers.ScalarMap[str, str]
    remove_labels: _containers.RepeatedScalarFieldContainer[str]
    metadata_json: str
    turn_options: _session_pb2.TurnOptions
    request_id: str
    def __init__(self, name: _Optional[str] = ..., title: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., remove_labels: _Optional[_Iterable[str]] = ..., metadata_json: _Optional[str] = ..., turn_options: _Optional[_Union[_session_pb2.TurnOptions, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class ArchiveSessionRequest(_message.Message):
    __slots__ = ("name", "undo", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    undo: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., undo: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ArchiveSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClientTool(_message.Message):
    __slots__ = ("name", "description", "input_schema_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    input_schema_json: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema_json: _Optional[str] = ...) -> None: ...

class CreateTurnRequest(_message.Message):
    __slots__ = ("parent", "text", "content", "on_active", "limits", "client_tools", "request_id", "resume", "options")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ON_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    parent: str
    text: str
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    on_active: OnActive
    limits: _turn_pb2.TurnLimits
    client_tools: _containers.RepeatedCompositeFieldContainer[ClientTool]
    request_id: str
    resume: bool
    options: _session_pb2.TurnOptions
    def __init__(self, parent: _Optional[str] = ..., text: _Optional[str] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., on_active: _Optional[_Union[OnActive, str]] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., client_tools: _Optional[_Iterable[_Union[ClientTool, _Mapping]]] = ..., request_id: _Optional[str] = ..., resume: _Optional[bool] = ..., options: _Optional[_Union[_session_pb2.TurnOptions, _Mapping]] = ...) -> None: ...

class CreateTurnResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: _turn_pb2.Turn
    def __init__(self, turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ...) -> None: ...

class RunTurnRequest(_message.Message):
    __slots__ = ("parent", "text", "content", "on_active", "limits", "client_tools", "request_id", "after_seq", "resume", "options")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ON_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    parent: str
    text: str
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    on_active: OnActive
    limits: _turn_pb2.TurnLimits
    client_tools: _containers.RepeatedCompositeFieldContainer[ClientTool]
    request_id: str
    after_seq: int
    resume: bool
    options: _session_pb2.TurnOptions
    def __init__(self, parent: _Optional[str] = ..., text: _Optional[str] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., on_active: _Optional[_Union[OnActive, str]] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., client_tools: _Optional[_Iterable[_Union[ClientTool, _Mapping]]] = ..., request_id: _Optional[str] = ..., after_seq: _Optional[int] = ..., resume: _Optional[bool] = ..., options: _Optional[_Union[_session_pb2.TurnOptions, _Mapping]] = ...) -> None: ...

class RunTurnResponse(_message.Message):
    __slots__ = ("event", "progress")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    event: _event_pb2.Event
    progress: Progress
    def __init__(self, event: _Optional[_Union[_event_pb2.Event, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("seq", "session_changed")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SESSION_CHANGED_FIELD_NUMBER: _ClassVar[int]
    seq: int
    session_changed: bool
    def __init__(self, seq: _Optional[int] = ..., session_changed: _Optional[bool] = ...) -> None: ...

class GetTurnRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetTurnResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: _turn_pb2.Turn
    def __init__(self, turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ...) -> None: ...

class ListTurnsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "of_request")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OF_REQUEST_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    of_request: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., of_request: _Optional[str] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("turns", "next_page_token")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[_turn_pb2.Turn]
    next_page_token: str
    def __init__(self, turns: _Optional[_Iterable[_Union[_turn_pb2.Turn, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("parent", "after_seq", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    after_seq: int
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., after_seq: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_event_pb2.Event]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[_event_pb2.Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class StreamEventsRequest(_message.Message):
    __slots__ = ("parent", "after_seq")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    parent: str
    after_seq: int
    def __init__(self, parent: _Optional[str] = ..., after_seq: _Optional[int] = ...) -> None: ...

class StreamEventsResponse(_message.Message):
    __slots__ = ("event", "progress")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    event: _event_pb2.Event
    progress: Progress
    def __init__(self, event: _Optional[_Union[_event_pb2.Event, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ...) -> None: ...

class ListMessagesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMessagesResponse(_message.Message):
    __slots__ = ("messages", "next_page_token")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    next_page_token: str
    def __init__(self, messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class InterruptSessionRequest(_message.Message):
    __slots__ = ("name", "request_id", "cancel_queued", "turn")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_QUEUED_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    cancel_queued: bool
    turn: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ..., cancel_queued: _Optional[bool] = ..., turn: _Optional[str] = ...) -> None: ...

class InterruptSessionResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: str
    def __init__(self, turn: _Optional[str] = ...) -> None: ...

class SetPermissionModeRequest(_message.Message):
    __slots__ = ("name", "permission_mode", "turn", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_MODE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    permission_mode: _permission_pb2.PermissionMode
    turn: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., permission_mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., turn: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetPermissionModeResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: str
    def __init__(self, turn: _Optional[str] = ...) -> None: ...

class ResolveApprovalRequest(_message.Message):
    __slots__ = ("parent", "call_id", "digest", "approved", "comment", "request_id", "scope", "rule", "updated_arguments_json", "mode")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    parent: str
    call_id: str
    digest: str
    approved: bool
    comment: str
    request_id: str
    scope: _permission_pb2.ApprovalScope
    rule: str
    updated_arguments_json: str
    mode: _permission_pb2.PermissionMode
    def __init__(self, parent: _Optional[str] = ..., call_id: _Optional[str] = ..., digest: _Optional[str] = ..., approved: _Optional[bool] = ..., comment: _Optional[str] = ..., request_id: _Optional[str] = ..., scope: _Optional[_Union[_permission_pb2.ApprovalScope, str]] = ..., rule: _Optional[str] = ..., updated_arguments_json: _Optional[str] = ..., mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ...) -> None: ...

class ResolveApprovalResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SubmitToolResultRequest(_message.Message):
    __slots__ = ("parent", "call_id", "content", "is_error", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    call_id: str
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    is_error: bool
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., call_id: _Optional[str] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., is_error: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SubmitToolResultResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForkSessionRequest(_message.Message):
    __slots__ = ("name", "turn", "session_id", "title", "without_files", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FILES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    turn: str
    session_id: str
    title: str
    without_files: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., turn: _Optional[str] = ..., session_id: _Optional[str] = ..., title: _Optional[str] = ..., without_files: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ForkSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class CompactSessionRequest(_message.Message):
    __slots__ = ("name", "instructions", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    instructions: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., instructions: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CompactSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExportSessionRequest(_message.Message):
    __slots__ = ("name", "format")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    name: str
    format: ExportFormat
    def __init__(self, name: _Optional[str] = ..., format: _Optional[_Union[ExportFormat, str]] = ...) -> None: ...

class ExportSessionResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ImportSessionRequest(_message.Message):
    __slots__ = ("open", "data")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    open: ImportOpen
    data: bytes
    def __init__(self, open: _Optional[_Union[ImportOpen, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ImportOpen(_message.Message):
    __slots__ = ("session_id", "agent", "request_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    agent: str
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., agent: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ImportSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class SearchMessagesRequest(_message.Message):
    __slots__ = ("query", "session", "page_size", "page_token", "user")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    query: str
    session: str
    page_size: int
    page_token: str
    user: str
    def __init__(self, query: _Optional[str] = ..., session: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class SearchMessagesResponse(_message.Message):
    __slots__ = ("messages", "next_page_token")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[FoundMessage]
    next_page_token: str
    def __init__(self, messages: _Optional[_Iterable[_Union[FoundMessage, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class FoundMessage(_message.Message):
    __slots__ = ("message", "turn", "role", "create_time", "snippet")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SNIPPET_FIELD_NUMBER: _ClassVar[int]
    message: str
    turn: str
    role: _message_pb2.Role
    create_time: _timestamp_pb2.Timestamp
    snippet: str
    def __init__(self, message: _Optional[str] = ..., turn: _Optional[str] = ..., role: _Optional[_Union[_message_pb2.Role, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., snippet: _Optional[str] = ...) -> None: ...

class ConverseRequest(_message.Message):
    __slots__ = ("open", "create_turn", "interrupt", "resolve_approval", "submit_tool_result", "answer_question")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CREATE_TURN_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    RESOLVE_APPROVAL_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_QUESTION_FIELD_NUMBER: _ClassVar[int]
    open: ConverseOpen
    create_turn: CreateTurnRequest
    interrupt: InterruptSessionRequest
    resolve_approval: ResolveApprovalRequest
    submit_tool_result: SubmitToolResultRequest
    answer_question: _approval_pb2.AnswerQuestionRequest
    def __init__(self, open: _Optional[_Union[ConverseOpen, _Mapping]] = ..., create_turn: _Optional[_Union[CreateTurnRequest, _Mapping]] = ..., interrupt: _Optional[_Union[InterruptSessionRequest, _Mapping]] = ..., resolve_approval: _Optional[_Union[ResolveApprovalRequest, _Mapping]] = ..., submit_tool_result: _Optional[_Union[SubmitToolResultRequest, _Mapping]] = ..., answer_question: _Optional[_Union[_approval_pb2.AnswerQuestionRequest, _Mapping]] = ...) -> None: ...

class ConverseOpen(_message.Message):
    __slots__ = ("session", "after_seq")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    session: str
    after_seq: int
    def __init__(self, session: _Optional[str] = ..., after_seq: _Optional[int] = ...) -> None: ...

class ConverseResponse(_message.Message):
    __slots__ = ("event", "progress", "accepted", "rejected")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    event: _event_pb2.Event
    progress: Progress
    accepted: ConverseAccepted
    rejected: ConverseRejected
    def __init__(self, event: _Optional[_Union[_event_pb2.Event, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., accepted: _Optional[_Union[ConverseAccepted, _Mapping]] = ..., rejected: _Optional[_Union[ConverseRejected, _Mapping]] = ...) -> None: ...

class ConverseAccepted(_message.Message):
    __slots__ = ("request_id", "turn")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    turn: _turn_pb2.Turn
    def __init__(self, request_id: _Optional[str] = ..., turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ...) -> None: ...

class ConverseRejected(_message.Message):
    __slots__ = ("request_id", "status")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    status: _status_pb2.Status
    def __init__(self, request_id: _Optional[str] = ..., status: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...
