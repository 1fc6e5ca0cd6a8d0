import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BeginLoginRequest(_message.Message):
    __slots__ = ("server",)
    SERVER_FIELD_NUMBER: _ClassVar[int]
    server: _mcp_pb2.McpServer
    def __init__(self, server: _Optional[_Union[_mcp_pb2.McpServer, _Mapping]] = ...) -> None: ...

class BeginLoginResponse(_message.Message):
    __slots__ = ("authorization_url", "expire_time")
    AUTHORIZATION_URL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    authorization_url: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, authorization_url: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FinishLoginRequest(_message.Message):
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

class FinishLoginResponse(_message.Message):
    __slots__ = ("server",)
    SERVER_FIELD_NUMBER: _ClassVar[int]
    server: str
    def __init__(self, server: _Optional[str] = ...) -> None: ...

class ForgetLoginRequest(_message.Message):
    __slots__ = ("server",)
    SERVER_FIELD_NUMBER: _ClassVar[int]
    server: _mcp_pb2.McpServer
    def __init__(self, server: _Optional[_Union[_mcp_pb2.McpServer, _Mapping]] = ...) -> None: ...

class ForgetLoginResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
