from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_WORKSPACE_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_FILE_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_PATH_ESCAPES: _ClassVar[ErrorReason]
    ERROR_REASON_WRONG_FILE_TYPE: _ClassVar[ErrorReason]
    ERROR_REASON_FILE_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_ETAG_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_EDIT_NO_MATCH: _ClassVar[ErrorReason]
    ERROR_REASON_EDIT_NOT_UNIQUE: _ClassVar[ErrorReason]
    ERROR_REASON_BAD_PATTERN: _ClassVar[ErrorReason]
    ERROR_REASON_EXEC_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_ID_REUSED: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_CANCELLED: _ClassVar[ErrorReason]
    ERROR_REASON_STALE_EPOCH: _ClassVar[ErrorReason]
    ERROR_REASON_STALE_GENERATION: _ClassVar[ErrorReason]
    ERROR_REASON_WORKSPACE_FULL: _ClassVar[ErrorReason]
    ERROR_REASON_FILE_TOO_LARGE: _ClassVar[ErrorReason]
    ERROR_REASON_BAD_PAGE_TOKEN: _ClassVar[ErrorReason]
    ERROR_REASON_ISOLATION_FAILED: _ClassVar[ErrorReason]
    ERROR_REASON_LIMIT_ABOVE_CEILING: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY_EXECS: _ClassVar[ErrorReason]
    ERROR_REASON_DIRECTORY_NOT_EMPTY: _ClassVar[ErrorReason]
    ERROR_REASON_EXEC_ACKNOWLEDGED: _ClassVar[ErrorReason]
    ERROR_REASON_WORKSPACE_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_BAD_ARCHIVE: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_WORKSPACE_NOT_FOUND: ErrorReason
ERROR_REASON_FILE_NOT_FOUND: ErrorReason
ERROR_REASON_PATH_ESCAPES: ErrorReason
ERROR_REASON_WRONG_FILE_TYPE: ErrorReason
ERROR_REASON_FILE_EXISTS: ErrorReason
ERROR_REASON_ETAG_MISMATCH: ErrorReason
ERROR_REASON_EDIT_NO_MATCH: ErrorReason
ERROR_REASON_EDIT_NOT_UNIQUE: ErrorReason
ERROR_REASON_BAD_PATTERN: ErrorReason
ERROR_REASON_EXEC_NOT_FOUND: ErrorReason
ERROR_REASON_CALL_ID_REUSED: ErrorReason
ERROR_REASON_CALL_CANCELLED: ErrorReason
ERROR_REASON_STALE_EPOCH: ErrorReason
ERROR_REASON_STALE_GENERATION: ErrorReason
ERROR_REASON_WORKSPACE_FULL: ErrorReason
ERROR_REASON_FILE_TOO_LARGE: ErrorReason
ERROR_REASON_BAD_PAGE_TOKEN: ErrorReason
ERROR_REASON_ISOLATION_FAILED: ErrorReason
ERROR_REASON_LIMIT_ABOVE_CEILING: ErrorReason
ERROR_REASON_TOO_MANY_EXECS: ErrorReason
ERROR_REASON_DIRECTORY_NOT_EMPTY: ErrorReason
ERROR_REASON_EXEC_ACKNOWLEDGED: ErrorReason
ERROR_REASON_WORKSPACE_EXISTS: ErrorReason
ERROR_REASON_BAD_ARCHIVE: ErrorReason
