from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Repository(_message.Message):
    __slots__ = ("directory", "branch", "commit", "url")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    directory: str
    branch: str
    commit: str
    url: str
    def __init__(self, directory: _Optional[str] = ..., branch: _Optional[str] = ..., commit: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class CloneRepositoryRequest(_message.Message):
    __slots__ = ("call", "url", "ref", "directory", "depth", "branch")
    CALL_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    url: str
    ref: str
    directory: str
    depth: int
    branch: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., url: _Optional[str] = ..., ref: _Optional[str] = ..., directory: _Optional[str] = ..., depth: _Optional[int] = ..., branch: _Optional[str] = ...) -> None: ...

class CloneRepositoryResponse(_message.Message):
    __slots__ = ("progress", "repository", "repeated")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    progress: CloneProgress
    repository: Repository
    repeated: bool
    def __init__(self, progress: _Optional[_Union[CloneProgress, _Mapping]] = ..., repository: _Optional[_Union[Repository, _Mapping]] = ..., repeated: _Optional[bool] = ...) -> None: ...

class CloneProgress(_message.Message):
    __slots__ = ("phase", "percent")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    phase: str
    percent: int
    def __init__(self, phase: _Optional[str] = ..., percent: _Optional[int] = ...) -> None: ...

class AddRepositoryRequest(_message.Message):
    __slots__ = ("call", "directory", "url", "branch")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    directory: str
    url: str
    branch: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., directory: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ...) -> None: ...

class AddRepositoryResponse(_message.Message):
    __slots__ = ("repository", "created")
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    repository: Repository
    created: bool
    def __init__(self, repository: _Optional[_Union[Repository, _Mapping]] = ..., created: _Optional[bool] = ...) -> None: ...

class RemoveRepositoryRequest(_message.Message):
    __slots__ = ("call", "directory")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    directory: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., directory: _Optional[str] = ...) -> None: ...

class RemoveRepositoryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRepositoriesRequest(_message.Message):
    __slots__ = ("session", "workspace_generation")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ...) -> None: ...

class ListRepositoriesResponse(_message.Message):
    __slots__ = ("repositories",)
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    repositories: _containers.RepeatedCompositeFieldContainer[Repository]
    def __init__(self, repositories: _Optional[_Iterable[_Union[Repository, _Mapping]]] = ...) -> None: ...

class GetRepositoryStatusRequest(_message.Message):
    __slots__ = ("session", "workspace_generation", "directory")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    session: str
    workspace_generation: int
    directory: str
    def __init__(self, session: _Optional[str] = ..., workspace_generation: _Optional[int] = ..., directory: _Optional[str] = ...) -> None: ...

class GetRepositoryStatusResponse(_message.Message):
    __slots__ = ("repository", "upstream", "ahead", "behind", "files", "truncated")
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    repository: Repository
    upstream: str
    ahead: int
    behind: int
    files: _containers.RepeatedCompositeFieldContainer[RepositoryChange]
    truncated: bool
    def __init__(self, repository: _Optional[_Union[Repository, _Mapping]] = ..., upstream: _Optional[str] = ..., ahead: _Optional[int] = ..., behind: _Optional[int] = ..., files: _Optional[_Iterable[_Union[RepositoryChange, _Mapping]]] = ..., truncated: _Optional[bool] = ...) -> None: ...

class RepositoryChange(_message.Message):
    __slots__ = ("path", "old_path", "index", "worktree")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OLD_PATH_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    WORKTREE_FIELD_NUMBER: _ClassVar[int]
    path: str
    old_path: str
    index: str
    worktree: str
    def __init__(self, path: _Optional[str] = ..., old_path: _Optional[str] = ..., index: _Optional[str] = ..., worktree: _Optional[str] = ...) -> None: ...

class CreateBranchRequest(_message.Message):
    __slots__ = ("call", "directory", "branch")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    directory: str
    branch: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., directory: _Optional[str] = ..., branch: _Optional[str] = ...) -> None: ...

class CreateBranchResponse(_message.Message):
    __slots__ = ("repository",)
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    repository: Repository
    def __init__(self, repository: _Optional[_Union[Repository, _Mapping]] = ...) -> None: ...

class PushRepositoryRequest(_message.Message):
    __slots__ = ("call", "directory", "url", "branch", "only_new")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    ONLY_NEW_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    directory: str
    url: str
    branch: str
    only_new: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., directory: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ..., only_new: _Optional[bool] = ...) -> None: ...

class PushRepositoryResponse(_message.Message):
    __slots__ = ("ref", "old_commit", "new_commit", "up_to_date")
    REF_FIELD_NUMBER: _ClassVar[int]
    OLD_COMMIT_FIELD_NUMBER: _ClassVar[int]
    NEW_COMMIT_FIELD_NUMBER: _ClassVar[int]
    UP_TO_DATE_FIELD_NUMBER: _ClassVar[int]
    ref: str
    old_commit: str
    new_commit: str
    up_to_date: bool
    def __init__(self, ref: _Optional[str] = ..., old_commit: _Optional[str] = ..., new_commit: _Optional[str] = ..., up_to_date: _Optional[bool] = ...) -> None: ...
