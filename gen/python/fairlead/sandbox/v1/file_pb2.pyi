import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from fairlead.sandbox.v1 import workspace_pb2 as _workspace_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_TYPE_UNSPECIFIED: _ClassVar[FileType]
    FILE_TYPE_REGULAR: _ClassVar[FileType]
    FILE_TYPE_DIRECTORY: _ClassVar[FileType]
    FILE_TYPE_SYMLINK: _ClassVar[FileType]
    FILE_TYPE_OTHER: _ClassVar[FileType]

class WatchedChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WATCHED_CHANGE_KIND_UNSPECIFIED: _ClassVar[WatchedChangeKind]
    WATCHED_CHANGE_KIND_CREATED: _ClassVar[WatchedChangeKind]
    WATCHED_CHANGE_KIND_MODIFIED: _ClassVar[WatchedChangeKind]
    WATCHED_CHANGE_KIND_DELETED: _ClassVar[WatchedChangeKind]
    WATCHED_CHANGE_KIND_LOST: _ClassVar[WatchedChangeKind]

class GrepMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GREP_MODE_UNSPECIFIED: _ClassVar[GrepMode]
    GREP_MODE_LINES: _ClassVar[GrepMode]
    GREP_MODE_FILES: _ClassVar[GrepMode]
    GREP_MODE_COUNT: _ClassVar[GrepMode]
FILE_TYPE_UNSPECIFIED: FileType
FILE_TYPE_REGULAR: FileType
FILE_TYPE_DIRECTORY: FileType
FILE_TYPE_SYMLINK: FileType
FILE_TYPE_OTHER: FileType
WATCHED_CHANGE_KIND_UNSPECIFIED: WatchedChangeKind
WATCHED_CHANGE_KIND_CREATED: WatchedChangeKind
WATCHED_CHANGE_KIND_MODIFIED: WatchedChangeKind
WATCHED_CHANGE_KIND_DELETED: WatchedChangeKind
WATCHED_CHANGE_KIND_LOST: WatchedChangeKind
GREP_MODE_UNSPECIFIED: GrepMode
GREP_MODE_LINES: GrepMode
GREP_MODE_FILES: GrepMode
GREP_MODE_COUNT: GrepMode

class FileInfo(_message.Message):
    __slots__ = ("path", "type", "size", "mode", "modify_time", "link_target", "etag")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    LINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    path: str
    type: FileType
    size: int
    mode: int
    modify_time: _timestamp_pb2.Timestamp
    link_target: str
    etag: str
    def __init__(self, path: _Optional[str] = ..., type: _Optional[_Union[FileType, str]] = ..., size: _Optional[int] = ..., mode: _Optional[int] = ..., modify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., link_target: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class StatFileRequest(_message.Message):
    __slots__ = ("session", "path", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    path: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., path: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class StatFileResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ...) -> None: ...

class ResolvePathRequest(_message.Message):
    __slots__ = ("session", "path", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    path: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., path: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class ResolvePathResponse(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    def __init__(self, path: _Optional[str] = ...) -> None: ...

class ListFilesRequest(_message.Message):
    __slots__ = ("session", "path", "page_size", "page_token", "ignore", "workspace_generation", "resolved_path", "denied", "recursive")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    IGNORE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    session: str
    path: str
    page_size: int
    page_token: str
    ignore: _containers.RepeatedScalarFieldContainer[str]
    workspace_generation: int
    resolved_path: str
    denied: _containers.RepeatedScalarFieldContainer[str]
    recursive: bool
    def __init__(self, session: _Optional[str] = ..., path: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., ignore: _Optional[_Iterable[str]] = ..., workspace_generation: _Optional[int] = ..., resolved_path: _Optional[str] = ..., denied: _Optional[_Iterable[str]] = ..., recursive: _Optional[bool] = ...) -> None: ...

class ListFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token", "left_out")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[FileInfo]
    next_page_token: str
    left_out: bool
    def __init__(self, files: _Optional[_Iterable[_Union[FileInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., left_out: _Optional[bool] = ...) -> None: ...

class ReadFileRequest(_message.Message):
    __slots__ = ("session", "path", "bytes", "lines", "workspace_generation", "resolved_path")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    session: str
    path: str
    bytes: ByteRange
    lines: LineRange
    workspace_generation: int
    resolved_path: str
    def __init__(self, session: _Optional[str] = ..., path: _Optional[str] = ..., bytes: _Optional[_Union[ByteRange, _Mapping]] = ..., lines: _Optional[_Union[LineRange, _Mapping]] = ..., workspace_generation: _Optional[int] = ..., resolved_path: _Optional[str] = ...) -> None: ...

class ByteRange(_message.Message):
    __slots__ = ("offset", "limit")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    offset: int
    limit: int
    def __init__(self, offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class LineRange(_message.Message):
    __slots__ = ("first", "count", "max_line_bytes", "max_bytes")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MAX_LINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    max_line_bytes: int
    max_bytes: int
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ..., max_line_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class ReadFileResponse(_message.Message):
    __slots__ = ("file", "data", "end")
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    data: bytes
    end: ReadFileEnd
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ..., data: _Optional[bytes] = ..., end: _Optional[_Union[ReadFileEnd, _Mapping]] = ...) -> None: ...

class ReadFileEnd(_message.Message):
    __slots__ = ("lines", "more", "cut_lines")
    LINES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    CUT_LINES_FIELD_NUMBER: _ClassVar[int]
    lines: int
    more: bool
    cut_lines: int
    def __init__(self, lines: _Optional[int] = ..., more: _Optional[bool] = ..., cut_lines: _Optional[int] = ...) -> None: ...

class WriteFileRequest(_message.Message):
    __slots__ = ("start", "data", "epoch")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    start: WriteFileStart
    data: bytes
    epoch: int
    def __init__(self, start: _Optional[_Union[WriteFileStart, _Mapping]] = ..., data: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

class WriteFileStart(_message.Message):
    __slots__ = ("call", "path", "mode", "if_etag", "create_only", "resolved_path")
    CALL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    path: str
    mode: int
    if_etag: str
    create_only: bool
    resolved_path: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., path: _Optional[str] = ..., mode: _Optional[int] = ..., if_etag: _Optional[str] = ..., create_only: _Optional[bool] = ..., resolved_path: _Optional[str] = ...) -> None: ...

class WriteFileResponse(_message.Message):
    __slots__ = ("file", "created")
    FILE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    created: bool
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ..., created: _Optional[bool] = ...) -> None: ...

class UnpackFilesRequest(_message.Message):
    __slots__ = ("start", "data", "epoch")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    start: UnpackFilesStart
    data: bytes
    epoch: int
    def __init__(self, start: _Optional[_Union[UnpackFilesStart, _Mapping]] = ..., data: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

class UnpackFilesStart(_message.Message):
    __slots__ = ("call", "path", "format")
    CALL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    path: str
    format: _workspace_pb2.ArchiveFormat
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., path: _Optional[str] = ..., format: _Optional[_Union[_workspace_pb2.ArchiveFormat, str]] = ...) -> None: ...

class UnpackFilesResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ...) -> None: ...

class EditFileRequest(_message.Message):
    __slots__ = ("call", "path", "edits", "resolved_path")
    CALL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    path: str
    edits: _containers.RepeatedCompositeFieldContainer[Edit]
    resolved_path: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., path: _Optional[str] = ..., edits: _Optional[_Iterable[_Union[Edit, _Mapping]]] = ..., resolved_path: _Optional[str] = ...) -> None: ...

class Edit(_message.Message):
    __slots__ = ("old_text", "new_text", "replace_all")
    OLD_TEXT_FIELD_NUMBER: _ClassVar[int]
    NEW_TEXT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_ALL_FIELD_NUMBER: _ClassVar[int]
    old_text: str
    new_text: str
    replace_all: bool
    def __init__(self, old_text: _Optional[str] = ..., new_text: _Optional[str] = ..., replace_all: _Optional[bool] = ...) -> None: ...

class EditFileResponse(_message.Message):
    __slots__ = ("file", "replacements", "snippet", "snippet_first_line")
    FILE_FIELD_NUMBER: _ClassVar[int]
    REPLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    SNIPPET_FIELD_NUMBER: _ClassVar[int]
    SNIPPET_FIRST_LINE_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    replacements: _containers.RepeatedScalarFieldContainer[int]
    snippet: str
    snippet_first_line: int
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ..., replacements: _Optional[_Iterable[int]] = ..., snippet: _Optional[str] = ..., snippet_first_line: _Optional[int] = ...) -> None: ...

class DeleteFileRequest(_message.Message):
    __slots__ = ("call", "path", "recursive")
    CALL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    path: str
    recursive: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ...) -> None: ...

class DeleteFileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MoveFileRequest(_message.Message):
    __slots__ = ("call", "path", "new_path", "overwrite")
    CALL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NEW_PATH_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    path: str
    new_path: str
    overwrite: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., path: _Optional[str] = ..., new_path: _Optional[str] = ..., overwrite: _Optional[bool] = ...) -> None: ...

class MoveFileResponse(_message.Message):
    __slots__ = ("file",)
    FILE_FIELD_NUMBER: _ClassVar[int]
    file: FileInfo
    def __init__(self, file: _Optional[_Union[FileInfo, _Mapping]] = ...) -> None: ...

class WatchFilesRequest(_message.Message):
    __slots__ = ("session", "path", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    path: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., path: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class WatchFilesResponse(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[WatchedChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[WatchedChange, _Mapping]]] = ...) -> None: ...

class WatchedChange(_message.Message):
    __slots__ = ("kind", "path")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    kind: WatchedChangeKind
    path: str
    def __init__(self, kind: _Optional[_Union[WatchedChangeKind, str]] = ..., path: _Optional[str] = ...) -> None: ...

class GlobFilesRequest(_message.Message):
    __slots__ = ("session", "pattern", "path", "max_results", "workspace_generation", "resolved_path", "denied")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    session: str
    pattern: str
    path: str
    max_results: int
    workspace_generation: int
    resolved_path: str
    denied: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[str] = ..., pattern: _Optional[str] = ..., path: _Optional[str] = ..., max_results: _Optional[int] = ..., workspace_generation: _Optional[int] = ..., resolved_path: _Optional[str] = ..., denied: _Optional[_Iterable[str]] = ...) -> None: ...

class GlobFilesResponse(_message.Message):
    __slots__ = ("files", "truncated", "left_out")
    FILES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[FileInfo]
    truncated: bool
    left_out: bool
    def __init__(self, files: _Optional[_Iterable[_Union[FileInfo, _Mapping]]] = ..., truncated: _Optional[bool] = ..., left_out: _Optional[bool] = ...) -> None: ...

class GrepFilesRequest(_message.Message):
    __slots__ = ("session", "pattern", "path", "glob", "ignore_case", "multiline", "before", "after", "max_lines", "mode", "workspace_generation", "resolved_path", "denied")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    GLOB_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    MULTILINE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_LINES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_PATH_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    session: str
    pattern: str
    path: str
    glob: str
    ignore_case: bool
    multiline: bool
    before: int
    after: int
    max_lines: int
    mode: GrepMode
    workspace_generation: int
    resolved_path: str
    denied: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[str] = ..., pattern: _Optional[str] = ..., path: _Optional[str] = ..., glob: _Optional[str] = ..., ignore_case: _Optional[bool] = ..., multiline: _Optional[bool] = ..., before: _Optional[int] = ..., after: _Optional[int] = ..., max_lines: _Optional[int] = ..., mode: _Optional[_Union[GrepMode, str]] = ..., workspace_generation: _Optional[int] = ..., resolved_path: _Optional[str] = ..., denied: _Optional[_Iterable[str]] = ...) -> None: ...

class GrepFilesResponse(_message.Message):
    __slots__ = ("matches", "truncated", "left_out")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[GrepMatch]
    truncated: bool
    left_out: bool
    def __init__(self, matches: _Optional[_Iterable[_Union[GrepMatch, _Mapping]]] = ..., truncated: _Optional[bool] = ..., left_out: _Optional[bool] = ...) -> None: ...

class GrepMatch(_message.Message):
    __slots__ = ("path", "line", "text", "context", "count", "cut_before", "cut_after")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CUT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CUT_AFTER_FIELD_NUMBER: _ClassVar[int]
    path: str
    line: int
    text: bytes
    context: bool
    count: int
    cut_before: int
    cut_after: int
    def __init__(self, path: _Optional[str] = ..., line: _Optional[int] = ..., text: _Optional[bytes] = ..., context: _Optional[bool] = ..., count: _Optional[int] = ..., cut_before: _Optional[int] = ..., cut_after: _Optional[int] = ...) -> None: ...
