import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClaimRequestKeyRequest(_message.Message):
    __slots__ = ("tenant", "user", "digest", "repeated")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    user: str
    digest: str
    repeated: bool
    def __init__(self, tenant: _Optional[str] = ..., user: _Optional[str] = ..., digest: _Optional[str] = ..., repeated: _Optional[bool] = ...) -> None: ...

class ClaimRequestKeyResponse(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class ResolveUserRequest(_message.Message):
    __slots__ = ("tenant", "user")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    user: str
    def __init__(self, tenant: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class ResolveUserResponse(_message.Message):
    __slots__ = ("role",)
    ROLE_FIELD_NUMBER: _ClassVar[int]
    role: _access_pb2.Role
    def __init__(self, role: _Optional[_Union[_access_pb2.Role, str]] = ...) -> None: ...

class ResolveKeyRequest(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    def __init__(self, sha256: _Optional[bytes] = ...) -> None: ...

class ResolveKeyResponse(_message.Message):
    __slots__ = ("tenant", "user", "role", "scopes", "credential", "expire_time")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    user: str
    role: _access_pb2.Role
    scopes: _containers.RepeatedScalarFieldContainer[str]
    credential: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, tenant: _Optional[str] = ..., user: _Optional[str] = ..., role: _Optional[_Union[_access_pb2.Role, str]] = ..., scopes: _Optional[_Iterable[str]] = ..., credential: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
