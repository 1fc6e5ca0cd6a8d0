import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetMcpStatusRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetMcpStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: McpStatus
    def __init__(self, status: _Optional[_Union[McpStatus, _Mapping]] = ...) -> None: ...

class McpStatus(_message.Message):
    __slots__ = ("name", "servers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServerStatus]
    def __init__(self, name: _Optional[str] = ..., servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServerStatus, _Mapping]]] = ...) -> None: ...

class CompleteMcpArgumentRequest(_message.Message):
    __slots__ = ("name", "argument")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    argument: _mcp_pb2.McpArgument
    def __init__(self, name: _Optional[str] = ..., argument: _Optional[_Union[_mcp_pb2.McpArgument, _Mapping]] = ...) -> None: ...

class CompleteMcpArgumentResponse(_message.Message):
    __slots__ = ("completion",)
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    completion: _mcp_pb2.McpCompletion
    def __init__(self, completion: _Optional[_Union[_mcp_pb2.McpCompletion, _Mapping]] = ...) -> None: ...

class WatchMcpResourceRequest(_message.Message):
    __slots__ = ("name", "uri")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    name: str
    uri: str
    def __init__(self, name: _Optional[str] = ..., uri: _Optional[str] = ...) -> None: ...

class WatchMcpResourceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LoginMcpServerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class LoginMcpServerResponse(_message.Message):
    __slots__ = ("authorization_url", "expire_time")
    AUTHORIZATION_URL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    authorization_url: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, authorization_url: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LogoutMcpServerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class LogoutMcpServerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FinishMcpLoginRequest(_message.Message):
    __slots__ = ("state", "code", "iss", "error")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ISS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    state: str
    code: str
    iss: str
    error: str
    def __init__(self, state: _Optional[str] = ..., code: _Optional[str] = ..., iss: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class FinishMcpLoginResponse(_message.Message):
    __slots__ = ("server", "message")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    server: str
    message: str
    def __init__(self, server: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class UserMcpServer(_message.Message):
    __slots__ = ("name", "server", "update_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    server: _mcp_pb2.McpServer
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., server: _Optional[_Union[_mcp_pb2.McpServer, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SetUserMcpServerRequest(_message.Message):
    __slots__ = ("name", "server", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    server: _mcp_pb2.McpServer
    request_id: str
    def __init__(self, name: _Optional[str] = ..., server: _Optional[_Union[_mcp_pb2.McpServer, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetUserMcpServerResponse(_message.Message):
    __slots__ = ("mcp_server",)
    MCP_SERVER_FIELD_NUMBER: _ClassVar[int]
    mcp_server: UserMcpServer
    def __init__(self, mcp_server: _Optional[_Union[UserMcpServer, _Mapping]] = ...) -> None: ...

class GetUserMcpServerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetUserMcpServerResponse(_message.Message):
    __slots__ = ("mcp_server",)
    MCP_SERVER_FIELD_NUMBER: _ClassVar[int]
    mcp_server: UserMcpServer
    def __init__(self, mcp_server: _Optional[_Union[UserMcpServer, _Mapping]] = ...) -> None: ...

class ListUserMcpServersRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListUserMcpServersResponse(_message.Message):
    __slots__ = ("mcp_servers", "next_page_token")
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    mcp_servers: _containers.RepeatedCompositeFieldContainer[UserMcpServer]
    next_page_token: str
    def __init__(self, mcp_servers: _Optional[_Iterable[_Union[UserMcpServer, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteUserMcpServerRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteUserMcpServerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
