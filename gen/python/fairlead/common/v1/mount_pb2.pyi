from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Mount(_message.Message):
    __slots__ = ("name", "path", "alias", "mode", "optional")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    alias: str
    mode: str
    optional: bool
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., alias: _Optional[str] = ..., mode: _Optional[str] = ..., optional: _Optional[bool] = ...) -> None: ...
