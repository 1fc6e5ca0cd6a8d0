import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkQueue(_message.Message):
    __slots__ = ("environment", "user")
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    environment: str
    user: str
    def __init__(self, environment: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("session", "number", "state", "worker", "metadata_json", "create_time", "acknowledge_time", "start_time", "heartbeat_time", "ttl", "stop_request_time", "stop_time")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    STOP_REQUEST_TIME_FIELD_NUMBER: _ClassVar[int]
    STOP_TIME_FIELD_NUMBER: _ClassVar[int]
    session: str
    number: int
    state: str
    worker: str
    metadata_json: str
    create_time: _timestamp_pb2.Timestamp
    acknowledge_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    heartbeat_time: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    stop_request_time: _timestamp_pb2.Timestamp
    stop_time: _timestamp_pb2.Timestamp
    def __init__(self, session: _Optional[str] = ..., number: _Optional[int] = ..., state: _Optional[str] = ..., worker: _Optional[str] = ..., metadata_json: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., acknowledge_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stop_request_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stop_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PollWorkRequest(_message.Message):
    __slots__ = ("queue", "worker", "reclaim")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_FIELD_NUMBER: _ClassVar[int]
    queue: WorkQueue
    worker: str
    reclaim: _duration_pb2.Duration
    def __init__(self, queue: _Optional[_Union[WorkQueue, _Mapping]] = ..., worker: _Optional[str] = ..., reclaim: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PollWorkResponse(_message.Message):
    __slots__ = ("work",)
    WORK_FIELD_NUMBER: _ClassVar[int]
    work: Work
    def __init__(self, work: _Optional[_Union[Work, _Mapping]] = ...) -> None: ...

class ChangeWorkRequest(_message.Message):
    __slots__ = ("queue", "session", "number", "acknowledge", "heartbeat", "stop", "metadata_json")
    class Acknowledge(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Heartbeat(_message.Message):
        __slots__ = ("expected", "ttl")
        EXPECTED_FIELD_NUMBER: _ClassVar[int]
        TTL_FIELD_NUMBER: _ClassVar[int]
        expected: _timestamp_pb2.Timestamp
        ttl: _duration_pb2.Duration
        def __init__(self, expected: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    class Stop(_message.Message):
        __slots__ = ("force",)
        FORCE_FIELD_NUMBER: _ClassVar[int]
        force: bool
        def __init__(self, force: _Optional[bool] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    queue: WorkQueue
    session: str
    number: int
    acknowledge: ChangeWorkRequest.Acknowledge
    heartbeat: ChangeWorkRequest.Heartbeat
    stop: ChangeWorkRequest.Stop
    metadata_json: str
    def __init__(self, queue: _Optional[_Union[WorkQueue, _Mapping]] = ..., session: _Optional[str] = ..., number: _Optional[int] = ..., acknowledge: _Optional[_Union[ChangeWorkRequest.Acknowledge, _Mapping]] = ..., heartbeat: _Optional[_Union[ChangeWorkRequest.Heartbeat, _Mapping]] = ..., stop: _Optional[_Union[ChangeWorkRequest.Stop, _Mapping]] = ..., metadata_json: _Optional[str] = ...) -> None: ...

class ChangeWorkResponse(_message.Message):
    __slots__ = ("work", "refused")
    WORK_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    work: Work
    refused: bool
    def __init__(self, work: _Optional[_Union[Work, _Mapping]] = ..., refused: _Optional[bool] = ...) -> None: ...

class ListWorkRequest(_message.Message):
    __slots__ = ("queue", "page_size", "after")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    queue: WorkQueue
    page_size: int
    after: str
    def __init__(self, queue: _Optional[_Union[WorkQueue, _Mapping]] = ..., page_size: _Optional[int] = ..., after: _Optional[str] = ...) -> None: ...

class ListWorkResponse(_message.Message):
    __slots__ = ("work",)
    WORK_FIELD_NUMBER: _ClassVar[int]
    work: _containers.RepeatedCompositeFieldContainer[Work]
    def __init__(self, work: _Optional[_Iterable[_Union[Work, _Mapping]]] = ...) -> None: ...

class GetWorkStatsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: WorkQueue
    def __init__(self, queue: _Optional[_Union[WorkQueue, _Mapping]] = ...) -> None: ...

class GetWorkStatsResponse(_message.Message):
    __slots__ = ("depth", "pending", "oldest_time")
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    OLDEST_TIME_FIELD_NUMBER: _ClassVar[int]
    depth: int
    pending: int
    oldest_time: _timestamp_pb2.Timestamp
    def __init__(self, depth: _Optional[int] = ..., pending: _Optional[int] = ..., oldest_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
