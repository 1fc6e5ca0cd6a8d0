import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import agent_pb2 as _agent_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetAgentRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "show_archived")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHOW_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    show_archived: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., show_archived: _Optional[bool] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[_agent_pb2.Agent]
    next_page_token: str
    def __init__(self, agents: _Optional[_Iterable[_Union[_agent_pb2.Agent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CreateAgentRequest(_message.Message):
    __slots__ = ("agent_id", "spec", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    spec: _agent_pb2.AgentSpec
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., spec: _Optional[_Union[_agent_pb2.AgentSpec, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class UpdateAgentRequest(_message.Message):
    __slots__ = ("name", "spec", "expected_version", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: _agent_pb2.AgentSpec
    expected_version: int
    request_id: str
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[_agent_pb2.AgentSpec, _Mapping]] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class RollbackAgentRequest(_message.Message):
    __slots__ = ("name", "version", "expected_version", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    expected_version: int
    request_id: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class RollbackAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class ArchiveAgentRequest(_message.Message):
    __slots__ = ("name", "undo", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    undo: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., undo: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ArchiveAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class GetAgentVersionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetAgentVersionResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: _agent_pb2.AgentVersion
    def __init__(self, version: _Optional[_Union[_agent_pb2.AgentVersion, _Mapping]] = ...) -> None: ...

class ListAgentVersionsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAgentVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[_agent_pb2.AgentVersion]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[_agent_pb2.AgentVersion, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("version", "models", "default_model", "sandbox", "sandbox_unavailable", "runtimes", "model_notes", "flags")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MODEL_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    RUNTIMES_FIELD_NUMBER: _ClassVar[int]
    MODEL_NOTES_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    version: str
    models: _containers.RepeatedScalarFieldContainer[str]
    default_model: str
    sandbox: SandboxCapabilities
    sandbox_unavailable: str
    runtimes: _containers.RepeatedCompositeFieldContainer[RuntimeCapabilities]
    model_notes: _containers.RepeatedCompositeFieldContainer[ModelCapabilities]
    flags: FlagCapabilities
    def __init__(self, version: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ..., default_model: _Optional[str] = ..., sandbox: _Optional[_Union[SandboxCapabilities, _Mapping]] = ..., sandbox_unavailable: _Optional[str] = ..., runtimes: _Optional[_Iterable[_Union[RuntimeCapabilities, _Mapping]]] = ..., model_notes: _Optional[_Iterable[_Union[ModelCapabilities, _Mapping]]] = ..., flags: _Optional[_Union[FlagCapabilities, _Mapping]] = ...) -> None: ...

class FlagCapabilities(_message.Message):
    __slots__ = ("names", "read_time", "problem")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    READ_TIME_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    read_time: _timestamp_pb2.Timestamp
    problem: str
    def __init__(self, names: _Optional[_Iterable[str]] = ..., read_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., problem: _Optional[str] = ...) -> None: ...

class ModelCapabilities(_message.Message):
    __slots__ = ("name", "unusable", "warning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNUSABLE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    name: str
    unusable: str
    warning: str
    def __init__(self, name: _Optional[str] = ..., unusable: _Optional[str] = ..., warning: _Optional[str] = ...) -> None: ...

class RuntimeCapabilities(_message.Message):
    __slots__ = ("name", "unusable", "version", "agents", "processes", "places", "turns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNUSABLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    unusable: str
    version: str
    agents: _containers.RepeatedScalarFieldContainer[str]
    processes: int
    places: int
    turns: int
    def __init__(self, name: _Optional[str] = ..., unusable: _Optional[str] = ..., version: _Optional[str] = ..., agents: _Optional[_Iterable[str]] = ..., processes: _Optional[int] = ..., places: _Optional[int] = ..., turns: _Optional[int] = ...) -> None: ...

class SandboxCapabilities(_message.Message):
    __slots__ = ("level", "driver", "includes", "network", "workspace_quota")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    INCLUDES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_QUOTA_FIELD_NUMBER: _ClassVar[int]
    level: str
    driver: str
    includes: _containers.RepeatedScalarFieldContainer[str]
    network: str
    workspace_quota: str
    def __init__(self, level: _Optional[str] = ..., driver: _Optional[str] = ..., includes: _Optional[_Iterable[str]] = ..., network: _Optional[str] = ..., workspace_quota: _Optional[str] = ...) -> None: ...
