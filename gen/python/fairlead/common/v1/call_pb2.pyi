from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class CallRef(_message.Message):
    __slots__ = ("session", "epoch", "call_id", "node", "workspace_generation", "holder")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    session: str
    epoch: int
    call_id: str
    node: str
    workspace_generation: int
    holder: str
    def __init__(self, session: _Optional[str] = ..., epoch: _Optional[int] = ..., call_id: _Optional[str] = ..., node: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., holder: _Optional[str] = ...) -> None: ...
