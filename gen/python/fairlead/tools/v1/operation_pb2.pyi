import datetime

from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.sandbox.v1 import exec_pb2 as _exec_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OperationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_STATE_UNSPECIFIED: _ClassVar[OperationState]
    OPERATION_STATE_RUNNING: _ClassVar[OperationState]
    OPERATION_STATE_SUCCEEDED: _ClassVar[OperationState]
    OPERATION_STATE_FAILED: _ClassVar[OperationState]
    OPERATION_STATE_CANCELLED: _ClassVar[OperationState]
    OPERATION_STATE_UNKNOWN: _ClassVar[OperationState]
    OPERATION_STATE_EXPIRED: _ClassVar[OperationState]
OPERATION_STATE_UNSPECIFIED: OperationState
OPERATION_STATE_RUNNING: OperationState
OPERATION_STATE_SUCCEEDED: OperationState
OPERATION_STATE_FAILED: OperationState
OPERATION_STATE_CANCELLED: OperationState
OPERATION_STATE_UNKNOWN: OperationState
OPERATION_STATE_EXPIRED: OperationState

class Operation(_message.Message):
    __slots__ = ("name", "session", "call_id", "tool", "state", "create_time", "end_time", "expire_time", "progress", "exit_code", "output_head", "output_tail", "output_bytes", "content", "network", "shortened")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_HEAD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TAIL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    SHORTENED_FIELD_NUMBER: _ClassVar[int]
    name: str
    session: str
    call_id: str
    tool: str
    state: OperationState
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    progress: str
    exit_code: int
    output_head: str
    output_tail: str
    output_bytes: int
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    network: _containers.RepeatedCompositeFieldContainer[_exec_pb2.NetworkUse]
    shortened: bool
    def __init__(self, name: _Optional[str] = ..., session: _Optional[str] = ..., call_id: _Optional[str] = ..., tool: _Optional[str] = ..., state: _Optional[_Union[OperationState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., progress: _Optional[str] = ..., exit_code: _Optional[int] = ..., output_head: _Optional[str] = ..., output_tail: _Optional[str] = ..., output_bytes: _Optional[int] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., network: _Optional[_Iterable[_Union[_exec_pb2.NetworkUse, _Mapping]]] = ..., shortened: _Optional[bool] = ...) -> None: ...
