import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from fairlead.common.v1 import mount_pb2 as _mount_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NetworkTls(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETWORK_TLS_UNSPECIFIED: _ClassVar[NetworkTls]
    NETWORK_TLS_PASS: _ClassVar[NetworkTls]
    NETWORK_TLS_RAW: _ClassVar[NetworkTls]
    NETWORK_TLS_INTERCEPT: _ClassVar[NetworkTls]
    NETWORK_TLS_UPGRADE: _ClassVar[NetworkTls]

class ArchiveFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARCHIVE_FORMAT_UNSPECIFIED: _ClassVar[ArchiveFormat]
    ARCHIVE_FORMAT_TAR: _ClassVar[ArchiveFormat]
    ARCHIVE_FORMAT_ZIP: _ClassVar[ArchiveFormat]
    ARCHIVE_FORMAT_TAR_GZIP: _ClassVar[ArchiveFormat]
NETWORK_TLS_UNSPECIFIED: NetworkTls
NETWORK_TLS_PASS: NetworkTls
NETWORK_TLS_RAW: NetworkTls
NETWORK_TLS_INTERCEPT: NetworkTls
NETWORK_TLS_UPGRADE: NetworkTls
ARCHIVE_FORMAT_UNSPECIFIED: ArchiveFormat
ARCHIVE_FORMAT_TAR: ArchiveFormat
ARCHIVE_FORMAT_ZIP: ArchiveFormat
ARCHIVE_FORMAT_TAR_GZIP: ArchiveFormat

class EnsureWorkspaceRequest(_message.Message):
    __slots__ = ("call", "seed_files", "network", "limits", "must_exist", "warm", "mounts", "trees", "environment")
    class SeedFilesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CALL_FIELD_NUMBER: _ClassVar[int]
    SEED_FILES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    WARM_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    seed_files: _containers.ScalarMap[str, bytes]
    network: NetworkPolicy
    limits: WorkspaceLimits
    must_exist: bool
    warm: bool
    mounts: WorkspaceMounts
    trees: WorkspaceTrees
    environment: WorkspaceEnvironment
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., seed_files: _Optional[_Mapping[str, bytes]] = ..., network: _Optional[_Union[NetworkPolicy, _Mapping]] = ..., limits: _Optional[_Union[WorkspaceLimits, _Mapping]] = ..., must_exist: _Optional[bool] = ..., warm: _Optional[bool] = ..., mounts: _Optional[_Union[WorkspaceMounts, _Mapping]] = ..., trees: _Optional[_Union[WorkspaceTrees, _Mapping]] = ..., environment: _Optional[_Union[WorkspaceEnvironment, _Mapping]] = ...) -> None: ...

class WorkspaceLimits(_message.Message):
    __slots__ = ("memory_bytes", "processes", "cpu_millis", "file_bytes", "open_files", "output_bytes", "flood_bytes", "workspace_bytes", "workspace_inodes", "timeout", "max_timeout")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLIS_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOOD_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_INODES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    processes: int
    cpu_millis: int
    file_bytes: int
    open_files: int
    output_bytes: int
    flood_bytes: int
    workspace_bytes: int
    workspace_inodes: int
    timeout: _duration_pb2.Duration
    max_timeout: _duration_pb2.Duration
    def __init__(self, memory_bytes: _Optional[int] = ..., processes: _Optional[int] = ..., cpu_millis: _Optional[int] = ..., file_bytes: _Optional[int] = ..., open_files: _Optional[int] = ..., output_bytes: _Optional[int] = ..., flood_bytes: _Optional[int] = ..., workspace_bytes: _Optional[int] = ..., workspace_inodes: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WorkspaceMounts(_message.Message):
    __slots__ = ("mounts",)
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    mounts: _containers.RepeatedCompositeFieldContainer[_mount_pb2.Mount]
    def __init__(self, mounts: _Optional[_Iterable[_Union[_mount_pb2.Mount, _Mapping]]] = ...) -> None: ...

class WorkspaceTrees(_message.Message):
    __slots__ = ("trees",)
    TREES_FIELD_NUMBER: _ClassVar[int]
    trees: _containers.RepeatedCompositeFieldContainer[WorkspaceTree]
    def __init__(self, trees: _Optional[_Iterable[_Union[WorkspaceTree, _Mapping]]] = ...) -> None: ...

class WorkspaceTree(_message.Message):
    __slots__ = ("name", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    digest: str
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class WorkspaceEnvironment(_message.Message):
    __slots__ = ("variables",)
    class VariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.ScalarMap[str, str]
    def __init__(self, variables: _Optional[_Mapping[str, str]] = ...) -> None: ...

class NetworkPolicy(_message.Message):
    __slots__ = ("rules",)
    RULES_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[NetworkRule]
    def __init__(self, rules: _Optional[_Iterable[_Union[NetworkRule, _Mapping]]] = ...) -> None: ...

class NetworkRule(_message.Message):
    __slots__ = ("name", "host", "ports", "methods", "paths", "tls", "credential")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    ports: _containers.RepeatedScalarFieldContainer[int]
    methods: _containers.RepeatedScalarFieldContainer[str]
    paths: _containers.RepeatedScalarFieldContainer[str]
    tls: NetworkTls
    credential: str
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., ports: _Optional[_Iterable[int]] = ..., methods: _Optional[_Iterable[str]] = ..., paths: _Optional[_Iterable[str]] = ..., tls: _Optional[_Union[NetworkTls, str]] = ..., credential: _Optional[str] = ...) -> None: ...

class EnsureWorkspaceResponse(_message.Message):
    __slots__ = ("created", "node", "workspace_generation", "missing_mounts")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    MISSING_MOUNTS_FIELD_NUMBER: _ClassVar[int]
    created: bool
    node: str
    workspace_generation: int
    missing_mounts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, created: _Optional[bool] = ..., node: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., missing_mounts: _Optional[_Iterable[str]] = ...) -> None: ...

class FenceWorkspaceRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class FenceWorkspaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SealWorkspaceRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class SealWorkspaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnsealWorkspaceRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class UnsealWorkspaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteWorkspaceRequest(_message.Message):
    __slots__ = ("session", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class DeleteWorkspaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteUserStorageRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteUserStorageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("level", "driver", "includes", "network", "workspace_quota", "node", "mounts", "environment")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    INCLUDES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_QUOTA_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    level: str
    driver: str
    includes: _containers.RepeatedScalarFieldContainer[str]
    network: str
    workspace_quota: str
    node: str
    mounts: _containers.RepeatedCompositeFieldContainer[WorkspaceMount]
    environment: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, level: _Optional[str] = ..., driver: _Optional[str] = ..., includes: _Optional[_Iterable[str]] = ..., network: _Optional[str] = ..., workspace_quota: _Optional[str] = ..., node: _Optional[str] = ..., mounts: _Optional[_Iterable[_Union[WorkspaceMount, _Mapping]]] = ..., environment: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkspaceMount(_message.Message):
    __slots__ = ("name", "paths", "writable", "on_request")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    WRITABLE_FIELD_NUMBER: _ClassVar[int]
    ON_REQUEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    paths: _containers.RepeatedScalarFieldContainer[str]
    writable: bool
    on_request: bool
    def __init__(self, name: _Optional[str] = ..., paths: _Optional[_Iterable[str]] = ..., writable: _Optional[bool] = ..., on_request: _Optional[bool] = ...) -> None: ...

class ExportWorkspaceRequest(_message.Message):
    __slots__ = ("session", "workspace_generation", "format", "path")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    format: ArchiveFormat
    path: str
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., format: _Optional[_Union[ArchiveFormat, str]] = ..., path: _Optional[str] = ...) -> None: ...

class ExportWorkspaceResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ImportWorkspaceRequest(_message.Message):
    __slots__ = ("open", "data")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    open: ImportWorkspaceOpen
    data: bytes
    def __init__(self, open: _Optional[_Union[ImportWorkspaceOpen, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ImportWorkspaceOpen(_message.Message):
    __slots__ = ("call", "format")
    CALL_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    format: ArchiveFormat
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., format: _Optional[_Union[ArchiveFormat, str]] = ...) -> None: ...

class ImportWorkspaceResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: bool
    def __init__(self, created: _Optional[bool] = ...) -> None: ...

class PutTreeRequest(_message.Message):
    __slots__ = ("open", "data")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    open: PutTreeOpen
    data: bytes
    def __init__(self, open: _Optional[_Union[PutTreeOpen, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class PutTreeOpen(_message.Message):
    __slots__ = ("node", "digest")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    node: str
    digest: str
    def __init__(self, node: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class PutTreeResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: bool
    def __init__(self, created: _Optional[bool] = ...) -> None: ...
