import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import event_pb2 as _event_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionFileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_FILE_TYPE_UNSPECIFIED: _ClassVar[SessionFileType]
    SESSION_FILE_TYPE_REGULAR: _ClassVar[SessionFileType]
    SESSION_FILE_TYPE_DIRECTORY: _ClassVar[SessionFileType]
    SESSION_FILE_TYPE_SYMLINK: _ClassVar[SessionFileType]
    SESSION_FILE_TYPE_OTHER: _ClassVar[SessionFileType]

class SessionArchiveFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_ARCHIVE_FORMAT_UNSPECIFIED: _ClassVar[SessionArchiveFormat]
    SESSION_ARCHIVE_FORMAT_TAR: _ClassVar[SessionArchiveFormat]
    SESSION_ARCHIVE_FORMAT_ZIP: _ClassVar[SessionArchiveFormat]
    SESSION_ARCHIVE_FORMAT_TAR_GZIP: _ClassVar[SessionArchiveFormat]
SESSION_FILE_TYPE_UNSPECIFIED: SessionFileType
SESSION_FILE_TYPE_REGULAR: SessionFileType
SESSION_FILE_TYPE_DIRECTORY: SessionFileType
SESSION_FILE_TYPE_SYMLINK: SessionFileType
SESSION_FILE_TYPE_OTHER: SessionFileType
SESSION_ARCHIVE_FORMAT_UNSPECIFIED: SessionArchiveFormat
SESSION_ARCHIVE_FORMAT_TAR: SessionArchiveFormat
SESSION_ARCHIVE_FORMAT_ZIP: SessionArchiveFormat
SESSION_ARCHIVE_FORMAT_TAR_GZIP: SessionArchiveFormat

class SessionFile(_message.Message):
    __slots__ = ("path", "type", "size", "mode", "modify_time", "link_target", "etag")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    LINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    path: str
    type: SessionFileType
    size: int
    mode: int
    modify_time: _timestamp_pb2.Timestamp
    link_target: str
    etag: str
    def __init__(self, path: _Optional[str] = ..., type: _Optional[_Union[SessionFileType, str]] = ..., size: _Optional[int] = ..., mode: _Optional[int] = ..., modify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., link_target: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class ListSessionFilesRequest(_message.Message):
    __slots__ = ("parent", "path", "recursive", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    recursive: bool
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSessionFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[SessionFile]
    next_page_token: str
    def __init__(self, files: _Optional[_Iterable[_Union[SessionFile, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListSessionArtifactsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSessionArtifactsResponse(_message.Message):
    __slots__ = ("artifacts", "next_page_token")
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    artifacts: _containers.RepeatedCompositeFieldContainer[_event_pb2.Artifact]
    next_page_token: str
    def __init__(self, artifacts: _Optional[_Iterable[_Union[_event_pb2.Artifact, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetSessionFileRequest(_message.Message):
    __slots__ = ("parent", "path")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GetSessionFileResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: SessionFile
    def __init__(self, file: _Optional[_Union[SessionFile, _Mapping]] = ...) -> None: ...

class ReadSessionFileRequest(_message.Message):
    __slots__ = ("parent", "path", "offset", "limit")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    offset: int
    limit: int
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ReadSessionFileResponse(_message.Message):
    __slots__ = ("file", "data")
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    file: SessionFile
    data: bytes
    def __init__(self, file: _Optional[_Union[SessionFile, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class WriteSessionFileRequest(_message.Message):
    __slots__ = ("start", "data")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    start: WriteSessionFileStart
    data: bytes
    def __init__(self, start: _Optional[_Union[WriteSessionFileStart, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class WriteSessionFileStart(_message.Message):
    __slots__ = ("parent", "path", "mode", "if_etag", "create_only", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    mode: int
    if_etag: str
    create_only: bool
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., mode: _Optional[int] = ..., if_etag: _Optional[str] = ..., create_only: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class WriteSessionFileResponse(_message.Message):
    __slots__ = ("file", "created")
    FILE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    file: SessionFile
    created: bool
    def __init__(self, file: _Optional[_Union[SessionFile, _Mapping]] = ..., created: _Optional[bool] = ...) -> None: ...

class MoveSessionFileRequest(_message.Message):
    __slots__ = ("parent", "path", "new_path", "overwrite", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NEW_PATH_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    new_path: str
    overwrite: bool
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., new_path: _Optional[str] = ..., overwrite: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class MoveSessionFileResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: SessionFile
    def __init__(self, file: _Optional[_Union[SessionFile, _Mapping]] = ...) -> None: ...

class DeleteSessionFileRequest(_message.Message):
    __slots__ = ("parent", "path", "recursive", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    recursive: bool
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteSessionFileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExportSessionFilesRequest(_message.Message):
    __slots__ = ("parent", "path", "format")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    format: SessionArchiveFormat
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., format: _Optional[_Union[SessionArchiveFormat, str]] = ...) -> None: ...

class ExportSessionFilesResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ImportSessionFilesRequest(_message.Message):
    __slots__ = ("start", "data")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    start: ImportSessionFilesStart
    data: bytes
    def __init__(self, start: _Optional[_Union[ImportSessionFilesStart, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ImportSessionFilesStart(_message.Message):
    __slots__ = ("parent", "path", "format", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    path: str
    format: SessionArchiveFormat
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., path: _Optional[str] = ..., format: _Optional[_Union[SessionArchiveFormat, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ImportSessionFilesResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: SessionFile
    def __init__(self, file: _Optional[_Union[SessionFile, _Mapping]] = ...) -> None: ...
