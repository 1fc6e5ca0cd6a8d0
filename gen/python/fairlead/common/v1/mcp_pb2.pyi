import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import content_pb2 as _content_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class McpServerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MCP_SERVER_STATE_UNSPECIFIED: _ClassVar[McpServerState]
    MCP_SERVER_STATE_CONNECTING: _ClassVar[McpServerState]
    MCP_SERVER_STATE_CONNECTED: _ClassVar[McpServerState]
    MCP_SERVER_STATE_FAILED: _ClassVar[McpServerState]
    MCP_SERVER_STATE_NEEDS_AUTHORIZATION: _ClassVar[McpServerState]
MCP_SERVER_STATE_UNSPECIFIED: McpServerState
MCP_SERVER_STATE_CONNECTING: McpServerState
MCP_SERVER_STATE_CONNECTED: McpServerState
MCP_SERVER_STATE_FAILED: McpServerState
MCP_SERVER_STATE_NEEDS_AUTHORIZATION: McpServerState

class McpServer(_message.Message):
    __slots__ = ("name", "stdio", "http", "required", "tools", "disabled_tools", "timeout", "trusted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STDIO_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    DISABLED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    stdio: McpStdio
    http: McpHttp
    required: bool
    tools: _containers.RepeatedScalarFieldContainer[str]
    disabled_tools: _containers.RepeatedScalarFieldContainer[str]
    timeout: _duration_pb2.Duration
    trusted: bool
    def __init__(self, name: _Optional[str] = ..., stdio: _Optional[_Union[McpStdio, _Mapping]] = ..., http: _Optional[_Union[McpHttp, _Mapping]] = ..., required: _Optional[bool] = ..., tools: _Optional[_Iterable[str]] = ..., disabled_tools: _Optional[_Iterable[str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., trusted: _Optional[bool] = ...) -> None: ...

class McpStdio(_message.Message):
    __slots__ = ("command", "args", "env")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    command: str
    args: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    def __init__(self, command: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ...) -> None: ...

class McpHttp(_message.Message):
    __slots__ = ("url", "headers", "sse", "oauth")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    URL_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    SSE_FIELD_NUMBER: _ClassVar[int]
    OAUTH_FIELD_NUMBER: _ClassVar[int]
    url: str
    headers: _containers.ScalarMap[str, str]
    sse: bool
    oauth: McpOAuth
    def __init__(self, url: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., sse: _Optional[bool] = ..., oauth: _Optional[_Union[McpOAuth, _Mapping]] = ...) -> None: ...

class McpOAuth(_message.Message):
    __slots__ = ("client_id", "client_secret", "scopes")
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_SECRET_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    client_secret: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, client_id: _Optional[str] = ..., client_secret: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class McpServerStatus(_message.Message):
    __slots__ = ("name", "state", "message", "protocol_version", "server", "tools", "connect_time", "required", "resources", "resource_templates", "prompts", "instructions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    CONNECT_TIME_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: McpServerState
    message: str
    protocol_version: str
    server: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    connect_time: _timestamp_pb2.Timestamp
    required: bool
    resources: _containers.RepeatedCompositeFieldContainer[_content_pb2.ResourceLink]
    resource_templates: _containers.RepeatedCompositeFieldContainer[McpResourceTemplate]
    prompts: _containers.RepeatedCompositeFieldContainer[McpPrompt]
    instructions: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[McpServerState, str]] = ..., message: _Optional[str] = ..., protocol_version: _Optional[str] = ..., server: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., connect_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., required: _Optional[bool] = ..., resources: _Optional[_Iterable[_Union[_content_pb2.ResourceLink, _Mapping]]] = ..., resource_templates: _Optional[_Iterable[_Union[McpResourceTemplate, _Mapping]]] = ..., prompts: _Optional[_Iterable[_Union[McpPrompt, _Mapping]]] = ..., instructions: _Optional[str] = ...) -> None: ...

class McpResourceTemplate(_message.Message):
    __slots__ = ("uri_template", "name", "title", "description", "media_type")
    URI_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    uri_template: str
    name: str
    title: str
    description: str
    media_type: str
    def __init__(self, uri_template: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., media_type: _Optional[str] = ...) -> None: ...

class McpPrompt(_message.Message):
    __slots__ = ("name", "title", "description", "arguments")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    title: str
    description: str
    arguments: _containers.RepeatedCompositeFieldContainer[McpPromptArgument]
    def __init__(self, name: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., arguments: _Optional[_Iterable[_Union[McpPromptArgument, _Mapping]]] = ...) -> None: ...

class McpPromptArgument(_message.Message):
    __slots__ = ("name", "description", "required")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    required: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., required: _Optional[bool] = ...) -> None: ...

class McpError(_message.Message):
    __slots__ = ("code", "message", "data_json")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    data_json: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., data_json: _Optional[str] = ...) -> None: ...

class McpArgument(_message.Message):
    __slots__ = ("prompt", "uri_template", "name", "value", "others")
    class OthersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    URI_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    uri_template: str
    name: str
    value: str
    others: _containers.ScalarMap[str, str]
    def __init__(self, prompt: _Optional[str] = ..., uri_template: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ..., others: _Optional[_Mapping[str, str]] = ...) -> None: ...

class McpCompletion(_message.Message):
    __slots__ = ("values", "total", "has_more")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    total: int
    has_more: bool
    def __init__(self, values: _Optional[_Iterable[str]] = ..., total: _Optional[int] = ..., has_more: _Optional[bool] = ...) -> None: ...
