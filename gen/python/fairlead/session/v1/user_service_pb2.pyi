import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UserVariable(_message.Message):
    __slots__ = ("name", "update_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SetUserVariableRequest(_message.Message):
    __slots__ = ("name", "value", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SetUserVariableResponse(_message.Message):
    __slots__ = ("variable",)
    VARIABLE_FIELD_NUMBER: _ClassVar[int]
    variable: UserVariable
    def __init__(self, variable: _Optional[_Union[UserVariable, _Mapping]] = ...) -> None: ...

class ListUserVariablesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListUserVariablesResponse(_message.Message):
    __slots__ = ("variables", "next_page_token")
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.RepeatedCompositeFieldContainer[UserVariable]
    next_page_token: str
    def __init__(self, variables: _Optional[_Iterable[_Union[UserVariable, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteUserVariableRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteUserVariableResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteUserStorageRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteUserStorageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
