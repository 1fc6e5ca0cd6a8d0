import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from fairlead.sandbox.v1 import file_pb2 as _file_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChangeStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_STATUS_UNSPECIFIED: _ClassVar[ChangeStatus]
    CHANGE_STATUS_ADDED: _ClassVar[ChangeStatus]
    CHANGE_STATUS_DELETED: _ClassVar[ChangeStatus]
    CHANGE_STATUS_MODIFIED: _ClassVar[ChangeStatus]
    CHANGE_STATUS_MODE_CHANGED: _ClassVar[ChangeStatus]
    CHANGE_STATUS_TYPE_CHANGED: _ClassVar[ChangeStatus]
CHANGE_STATUS_UNSPECIFIED: ChangeStatus
CHANGE_STATUS_ADDED: ChangeStatus
CHANGE_STATUS_DELETED: ChangeStatus
CHANGE_STATUS_MODIFIED: ChangeStatus
CHANGE_STATUS_MODE_CHANGED: ChangeStatus
CHANGE_STATUS_TYPE_CHANGED: ChangeStatus

class Snapshot(_message.Message):
    __slots__ = ("id", "description", "parent", "create_time", "files", "directories", "links", "bytes", "added_bytes", "left_out", "left_out_count")
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ADDED_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    id: str
    description: str
    parent: str
    create_time: _timestamp_pb2.Timestamp
    files: int
    directories: int
    links: int
    bytes: int
    added_bytes: int
    left_out: _containers.RepeatedCompositeFieldContainer[LeftOut]
    left_out_count: int
    def __init__(self, id: _Optional[str] = ..., description: _Optional[str] = ..., parent: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., files: _Optional[int] = ..., directories: _Optional[int] = ..., links: _Optional[int] = ..., bytes: _Optional[int] = ..., added_bytes: _Optional[int] = ..., left_out: _Optional[_Iterable[_Union[LeftOut, _Mapping]]] = ..., left_out_count: _Optional[int] = ...) -> None: ...

class LeftOut(_message.Message):
    __slots__ = ("path", "why")
    PATH_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    path: str
    why: str
    def __init__(self, path: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class CreateSnapshotRequest(_message.Message):
    __slots__ = ("call", "description", "parent")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    description: str
    parent: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., description: _Optional[str] = ..., parent: _Optional[str] = ...) -> None: ...

class CreateSnapshotResponse(_message.Message):
    __slots__ = ("snapshot", "frozen")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    frozen: _duration_pb2.Duration
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ..., frozen: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetSnapshotRequest(_message.Message):
    __slots__ = ("session", "snapshot", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    snapshot: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., snapshot: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class GetSnapshotResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class ListSnapshotsRequest(_message.Message):
    __slots__ = ("session", "workspace_generation", "page_size", "page_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    page_size: int
    page_token: str
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSnapshotsResponse(_message.Message):
    __slots__ = ("snapshots", "next_page_token")
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    snapshots: _containers.RepeatedCompositeFieldContainer[Snapshot]
    next_page_token: str
    def __init__(self, snapshots: _Optional[_Iterable[_Union[Snapshot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class FileChange(_message.Message):
    __slots__ = ("path", "status", "before", "after", "binary", "unified", "truncated")
    PATH_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    UNIFIED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    path: str
    status: ChangeStatus
    before: ChangedFile
    after: ChangedFile
    binary: bool
    unified: str
    truncated: bool
    def __init__(self, path: _Optional[str] = ..., status: _Optional[_Union[ChangeStatus, str]] = ..., before: _Optional[_Union[ChangedFile, _Mapping]] = ..., after: _Optional[_Union[ChangedFile, _Mapping]] = ..., binary: _Optional[bool] = ..., unified: _Optional[str] = ..., truncated: _Optional[bool] = ...) -> None: ...

class ChangedFile(_message.Message):
    __slots__ = ("type", "mode", "size")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    type: _file_pb2.FileType
    mode: int
    size: int
    def __init__(self, type: _Optional[_Union[_file_pb2.FileType, str]] = ..., mode: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class DiffSnapshotsRequest(_message.Message):
    __slots__ = ("session", "workspace_generation", "to", "path", "unified", "page_size", "page_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    UNIFIED_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    to: str
    path: str
    unified: bool
    page_size: int
    page_token: str
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., to: _Optional[str] = ..., path: _Optional[str] = ..., unified: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., **kwargs) -> None: ...

class DiffSnapshotsResponse(_message.Message):
    __slots__ = ("changes", "next_page_token")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    next_page_token: str
    def __init__(self, changes: _Optional[_Iterable[_Union[FileChange, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RestoreSnapshotRequest(_message.Message):
    __slots__ = ("call", "snapshot")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    snapshot: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., snapshot: _Optional[str] = ...) -> None: ...

class RestoreSnapshotResponse(_message.Message):
    __slots__ = ("written", "removed", "changed", "frozen")
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    written: int
    removed: int
    changed: int
    frozen: _duration_pb2.Duration
    def __init__(self, written: _Optional[int] = ..., removed: _Optional[int] = ..., changed: _Optional[int] = ..., frozen: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeleteSnapshotsRequest(_message.Message):
    __slots__ = ("call", "snapshots", "keep_last")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    KEEP_LAST_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    snapshots: _containers.RepeatedScalarFieldContainer[str]
    keep_last: int
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., snapshots: _Optional[_Iterable[str]] = ..., keep_last: _Optional[int] = ...) -> None: ...

class DeleteSnapshotsResponse(_message.Message):
    __slots__ = ("deleted", "freed_bytes")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    deleted: int
    freed_bytes: int
    def __init__(self, deleted: _Optional[int] = ..., freed_bytes: _Optional[int] = ...) -> None: ...

class ForkSnapshotRequest(_message.Message):
    __slots__ = ("call", "source", "source_generation", "snapshot")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    source: str
    source_generation: int
    snapshot: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., source: _Optional[str] = ..., source_generation: _Optional[int] = ..., snapshot: _Optional[str] = ...) -> None: ...

class ForkSnapshotResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: bool
    def __init__(self, created: _Optional[bool] = ...) -> None: ...

class ExportSnapshotsRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class ExportSnapshotsResponse(_message.Message):
    __slots__ = ("snapshots", "sent_bytes")
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    snapshots: int
    sent_bytes: int
    def __init__(self, snapshots: _Optional[int] = ..., sent_bytes: _Optional[int] = ...) -> None: ...

class ImportSnapshotsRequest(_message.Message):
    __slots__ = ("call", "snapshot")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    snapshot: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., snapshot: _Optional[str] = ...) -> None: ...

class ImportSnapshotsResponse(_message.Message):
    __slots__ = ("created", "snapshot")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    created: bool
    snapshot: Snapshot
    def __init__(self, created: _Optional[bool] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...
