from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_TOOL_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_PROFILE_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_ID_REUSED: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_CANCELLED: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_CALL_NOT_DELEGATED: _ClassVar[ErrorReason]
    ERROR_REASON_DIGEST_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_STALE_EPOCH: _ClassVar[ErrorReason]
    ERROR_REASON_BAD_PAGE_TOKEN: _ClassVar[ErrorReason]
    ERROR_REASON_STORE_UNAVAILABLE: _ClassVar[ErrorReason]
    ERROR_REASON_SANDBOX_UNAVAILABLE: _ClassVar[ErrorReason]
    ERROR_REASON_OPERATION_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_REQUEST_ID_REUSED: _ClassVar[ErrorReason]
    ERROR_REASON_REPLICA_UNAVAILABLE: _ClassVar[ErrorReason]
    ERROR_REASON_BYPASS_NOT_ALLOWED: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_RULE: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_GRANT: _ClassVar[ErrorReason]
    ERROR_REASON_PROFILE_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_PROFILE_READ_ONLY: _ClassVar[ErrorReason]
    ERROR_REASON_PROFILE_CHANGED: _ClassVar[ErrorReason]
    ERROR_REASON_GRANT_NOT_FOUND: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_TOOL_NOT_FOUND: ErrorReason
ERROR_REASON_PROFILE_NOT_FOUND: ErrorReason
ERROR_REASON_CALL_ID_REUSED: ErrorReason
ERROR_REASON_CALL_CANCELLED: ErrorReason
ERROR_REASON_CALL_NOT_FOUND: ErrorReason
ERROR_REASON_CALL_NOT_DELEGATED: ErrorReason
ERROR_REASON_DIGEST_MISMATCH: ErrorReason
ERROR_REASON_STALE_EPOCH: ErrorReason
ERROR_REASON_BAD_PAGE_TOKEN: ErrorReason
ERROR_REASON_STORE_UNAVAILABLE: ErrorReason
ERROR_REASON_SANDBOX_UNAVAILABLE: ErrorReason
ERROR_REASON_OPERATION_NOT_FOUND: ErrorReason
ERROR_REASON_REQUEST_ID_REUSED: ErrorReason
ERROR_REASON_REPLICA_UNAVAILABLE: ErrorReason
ERROR_REASON_BYPASS_NOT_ALLOWED: ErrorReason
ERROR_REASON_INVALID_RULE: ErrorReason
ERROR_REASON_INVALID_GRANT: ErrorReason
ERROR_REASON_PROFILE_EXISTS: ErrorReason
ERROR_REASON_PROFILE_READ_ONLY: ErrorReason
ERROR_REASON_PROFILE_CHANGED: ErrorReason
ERROR_REASON_GRANT_NOT_FOUND: ErrorReason
