from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Repository(_message.Message):
    __slots__ = ("name", "branch", "commit", "url")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    name: str
    branch: str
    commit: str
    url: str
    def __init__(self, name: _Optional[str] = ..., branch: _Optional[str] = ..., commit: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class ListRepositoriesRequest(_message.Message):
    __slots__ = ("parent",)
    PARENT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    def __init__(self, parent: _Optional[str] = ...) -> None: ...

class ListRepositoriesResponse(_message.Message):
    __slots__ = ("repositories",)
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    repositories: _containers.RepeatedCompositeFieldContainer[Repository]
    def __init__(self, repositories: _Optional[_Iterable[_Union[Repository, _Mapping]]] = ...) -> None: ...

class AddRepositoryRequest(_message.Message):
    __slots__ = ("parent", "repository_id", "url", "ref", "depth", "branch", "session_branch", "request_id", "push")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    SESSION_BRANCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    parent: str
    repository_id: str
    url: str
    ref: str
    depth: int
    branch: str
    session_branch: bool
    request_id: str
    push: str
    def __init__(self, parent: _Optional[str] = ..., repository_id: _Optional[str] = ..., url: _Optional[str] = ..., ref: _Optional[str] = ..., depth: _Optional[int] = ..., branch: _Optional[str] = ..., session_branch: _Optional[bool] = ..., request_id: _Optional[str] = ..., push: _Optional[str] = ...) -> None: ...

class AddRepositoryResponse(_message.Message):
    __slots__ = ("repository",)
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    repository: Repository
    def __init__(self, repository: _Optional[_Union[Repository, _Mapping]] = ...) -> None: ...

class GetRepositoryStatusRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

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

class RemoveRepositoryRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RemoveRepositoryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PushRepositoryRequest(_message.Message):
    __slots__ = ("name", "url", "branch", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    branch: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

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
