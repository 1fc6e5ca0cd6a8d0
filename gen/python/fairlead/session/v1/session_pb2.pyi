import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from fairlead.common.v1 import mount_pb2 as _mount_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATE_UNSPECIFIED: _ClassVar[SessionState]
    SESSION_STATE_IDLE: _ClassVar[SessionState]
    SESSION_STATE_RUNNING: _ClassVar[SessionState]
    SESSION_STATE_WAITING: _ClassVar[SessionState]
SESSION_STATE_UNSPECIFIED: SessionState
SESSION_STATE_IDLE: SessionState
SESSION_STATE_RUNNING: SessionState
SESSION_STATE_WAITING: SessionState

class Session(_message.Message):
    __slots__ = ("name", "agent", "agent_revision", "title", "labels", "create_time", "update_time", "last_seq", "head", "active_turn", "usage", "finished_turns", "forked_from", "budget", "mounts", "rewinding", "agent_version", "user", "key", "metadata_json", "archive_time", "first_message", "first_turn", "turn_options", "environment", "environment_version", "pushed_repositories", "mcp_servers", "permissions", "parent_call", "state", "skills")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    AGENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_TURN_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_TURNS_FIELD_NUMBER: _ClassVar[int]
    FORKED_FROM_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    REWINDING_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    FIRST_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIRST_TURN_FIELD_NUMBER: _ClassVar[int]
    TURN_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PUSHED_REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    PARENT_CALL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    agent_revision: str
    title: str
    labels: _containers.ScalarMap[str, str]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    last_seq: int
    head: str
    active_turn: str
    usage: Usage
    finished_turns: int
    forked_from: str
    budget: Budget
    mounts: _containers.RepeatedCompositeFieldContainer[_mount_pb2.Mount]
    rewinding: bool
    agent_version: int
    user: str
    key: str
    metadata_json: str
    archive_time: _timestamp_pb2.Timestamp
    first_message: FirstMessage
    first_turn: str
    turn_options: TurnOptions
    environment: str
    environment_version: int
    pushed_repositories: _containers.RepeatedCompositeFieldContainer[PushedRepository]
    mcp_servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServer]
    permissions: _permission_pb2.PermissionRules
    parent_call: ParentCall
    state: SessionState
    skills: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., agent_revision: _Optional[str] = ..., title: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_seq: _Optional[int] = ..., head: _Optional[str] = ..., active_turn: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., finished_turns: _Optional[int] = ..., forked_from: _Optional[str] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., mounts: _Optional[_Iterable[_Union[_mount_pb2.Mount, _Mapping]]] = ..., rewinding: _Optional[bool] = ..., agent_version: _Optional[int] = ..., user: _Optional[str] = ..., key: _Optional[str] = ..., metadata_json: _Optional[str] = ..., archive_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., first_message: _Optional[_Union[FirstMessage, _Mapping]] = ..., first_turn: _Optional[str] = ..., turn_options: _Optional[_Union[TurnOptions, _Mapping]] = ..., environment: _Optional[str] = ..., environment_version: _Optional[int] = ..., pushed_repositories: _Optional[_Iterable[_Union[PushedRepository, _Mapping]]] = ..., mcp_servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServer, _Mapping]]] = ..., permissions: _Optional[_Union[_permission_pb2.PermissionRules, _Mapping]] = ..., parent_call: _Optional[_Union[ParentCall, _Mapping]] = ..., state: _Optional[_Union[SessionState, str]] = ..., skills: _Optional[_Iterable[str]] = ...) -> None: ...

class ParentCall(_message.Message):
    __slots__ = ("session", "call_id", "turn", "root", "depth", "subagent")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_FIELD_NUMBER: _ClassVar[int]
    session: str
    call_id: str
    turn: str
    root: str
    depth: int
    subagent: str
    def __init__(self, session: _Optional[str] = ..., call_id: _Optional[str] = ..., turn: _Optional[str] = ..., root: _Optional[str] = ..., depth: _Optional[int] = ..., subagent: _Optional[str] = ...) -> None: ...

class PushedRepository(_message.Message):
    __slots__ = ("directory", "url", "branch")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    directory: str
    url: str
    branch: str
    def __init__(self, directory: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ...) -> None: ...

class TurnOptions(_message.Message):
    __slots__ = ("model", "thinking_tokens", "context", "parameters", "permission_mode")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    THINKING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_MODE_FIELD_NUMBER: _ClassVar[int]
    model: str
    thinking_tokens: int
    context: str
    parameters: _containers.ScalarMap[str, str]
    permission_mode: _permission_pb2.PermissionMode
    def __init__(self, model: _Optional[str] = ..., thinking_tokens: _Optional[int] = ..., context: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ..., permission_mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ...) -> None: ...

class FirstMessage(_message.Message):
    __slots__ = ("text", "content", "options")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    text: str
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    options: TurnOptions
    def __init__(self, text: _Optional[str] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., options: _Optional[_Union[TurnOptions, _Mapping]] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("max_tokens", "max_cost_nano_usd", "max_wall_time", "soft_percent")
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_NANO_USD_FIELD_NUMBER: _ClassVar[int]
    MAX_WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    SOFT_PERCENT_FIELD_NUMBER: _ClassVar[int]
    max_tokens: int
    max_cost_nano_usd: int
    max_wall_time: _duration_pb2.Duration
    soft_percent: int
    def __init__(self, max_tokens: _Optional[int] = ..., max_cost_nano_usd: _Optional[int] = ..., max_wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., soft_percent: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "thinking_tokens", "cost_nano_usd", "estimated")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    THINKING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_NANO_USD_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    thinking_tokens: int
    cost_nano_usd: int
    estimated: bool
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., thinking_tokens: _Optional[int] = ..., cost_nano_usd: _Optional[int] = ..., estimated: _Optional[bool] = ...) -> None: ...
