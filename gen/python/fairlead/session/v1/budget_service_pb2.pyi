import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import session_pb2 as _session_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListBudgetsRequest(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: str
    def __init__(self, session: _Optional[str] = ...) -> None: ...

class ListBudgetsResponse(_message.Message):
    __slots__ = ("budgets",)
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    budgets: _containers.RepeatedCompositeFieldContainer[BudgetStatus]
    def __init__(self, budgets: _Optional[_Iterable[_Union[BudgetStatus, _Mapping]]] = ...) -> None: ...

class BudgetStatus(_message.Message):
    __slots__ = ("scope", "subject", "limits", "used_tokens", "used_cost_nano_usd", "used_wall_time", "reserved_tokens", "reserved_cost_nano_usd", "window_end", "reserved_wall_time")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    USED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    USED_COST_NANO_USD_FIELD_NUMBER: _ClassVar[int]
    USED_WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    RESERVED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_COST_NANO_USD_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_FIELD_NUMBER: _ClassVar[int]
    RESERVED_WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    scope: str
    subject: str
    limits: _session_pb2.Budget
    used_tokens: int
    used_cost_nano_usd: int
    used_wall_time: _duration_pb2.Duration
    reserved_tokens: int
    reserved_cost_nano_usd: int
    window_end: _timestamp_pb2.Timestamp
    reserved_wall_time: _duration_pb2.Duration
    def __init__(self, scope: _Optional[str] = ..., subject: _Optional[str] = ..., limits: _Optional[_Union[_session_pb2.Budget, _Mapping]] = ..., used_tokens: _Optional[int] = ..., used_cost_nano_usd: _Optional[int] = ..., used_wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reserved_tokens: _Optional[int] = ..., reserved_cost_nano_usd: _Optional[int] = ..., window_end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reserved_wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
