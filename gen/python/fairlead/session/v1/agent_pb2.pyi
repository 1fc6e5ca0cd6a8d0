import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from fairlead.common.v1 import mount_pb2 as _mount_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Agent(_message.Message):
    __slots__ = ("name", "revision", "description", "model", "tools", "profile", "greeting", "default", "verdict", "output_schema_json", "network", "limits", "mounts", "repositories", "checkpoints", "version", "models", "parameters", "environment", "skills", "permissions", "metadata_json", "create_time", "update_time", "archive_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    GREETING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    revision: str
    description: str
    model: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    profile: str
    greeting: str
    default: bool
    verdict: str
    output_schema_json: str
    network: _containers.RepeatedCompositeFieldContainer[AgentNetworkRule]
    limits: AgentLimits
    mounts: _containers.RepeatedCompositeFieldContainer[_mount_pb2.Mount]
    repositories: _containers.RepeatedCompositeFieldContainer[AgentRepository]
    checkpoints: _containers.RepeatedScalarFieldContainer[str]
    version: int
    models: _containers.RepeatedScalarFieldContainer[str]
    parameters: _containers.RepeatedScalarFieldContainer[str]
    environment: str
    skills: _containers.RepeatedScalarFieldContainer[str]
    permissions: _permission_pb2.PermissionRules
    metadata_json: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    archive_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., revision: _Optional[str] = ..., description: _Optional[str] = ..., model: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., profile: _Optional[str] = ..., greeting: _Optional[str] = ..., default: _Optional[bool] = ..., verdict: _Optional[str] = ..., output_schema_json: _Optional[str] = ..., network: _Optional[_Iterable[_Union[AgentNetworkRule, _Mapping]]] = ..., limits: _Optional[_Union[AgentLimits, _Mapping]] = ..., mounts: _Optional[_Iterable[_Union[_mount_pb2.Mount, _Mapping]]] = ..., repositories: _Optional[_Iterable[_Union[AgentRepository, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[str]] = ..., version: _Optional[int] = ..., models: _Optional[_Iterable[str]] = ..., parameters: _Optional[_Iterable[str]] = ..., environment: _Optional[str] = ..., skills: _Optional[_Iterable[str]] = ..., permissions: _Optional[_Union[_permission_pb2.PermissionRules, _Mapping]] = ..., metadata_json: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., archive_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AgentVersion(_message.Message):
    __slots__ = ("name", "version", "revision", "spec", "create_time", "user", "restored_from")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FROM_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    revision: str
    spec: AgentSpec
    create_time: _timestamp_pb2.Timestamp
    user: str
    restored_from: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., revision: _Optional[str] = ..., spec: _Optional[_Union[AgentSpec, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., user: _Optional[str] = ..., restored_from: _Optional[int] = ...) -> None: ...

class AgentSpec(_message.Message):
    __slots__ = ("description", "model", "prompt", "tools", "profile", "greeting", "verdict", "output_schema_json", "pre_compaction", "checkpoints", "network", "limits", "mounts", "repositories", "max_steps", "max_wall_time", "max_output_tokens", "models", "parameters", "environment", "mcp_servers", "permissions", "subagents", "skills", "runtime", "claude_code", "metadata_json")
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    GREETING_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    PRE_COMPACTION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    SUBAGENTS_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    CLAUDE_CODE_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    description: str
    model: str
    prompt: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    profile: str
    greeting: str
    verdict: str
    output_schema_json: str
    pre_compaction: str
    checkpoints: AgentCheckpoints
    network: _containers.RepeatedCompositeFieldContainer[AgentNetworkRule]
    limits: AgentLimits
    mounts: _containers.RepeatedCompositeFieldContainer[_mount_pb2.Mount]
    repositories: _containers.RepeatedCompositeFieldContainer[AgentRepository]
    max_steps: int
    max_wall_time: _duration_pb2.Duration
    max_output_tokens: int
    models: _containers.RepeatedScalarFieldContainer[str]
    parameters: _containers.RepeatedScalarFieldContainer[str]
    environment: str
    mcp_servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServer]
    permissions: _permission_pb2.PermissionRules
    subagents: _containers.RepeatedCompositeFieldContainer[Subagent]
    skills: _containers.RepeatedScalarFieldContainer[str]
    runtime: str
    claude_code: ClaudeCodeOptions
    metadata_json: str
    def __init__(self, description: _Optional[str] = ..., model: _Optional[str] = ..., prompt: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., profile: _Optional[str] = ..., greeting: _Optional[str] = ..., verdict: _Optional[str] = ..., output_schema_json: _Optional[str] = ..., pre_compaction: _Optional[str] = ..., checkpoints: _Optional[_Union[AgentCheckpoints, _Mapping]] = ..., network: _Optional[_Iterable[_Union[AgentNetworkRule, _Mapping]]] = ..., limits: _Optional[_Union[AgentLimits, _Mapping]] = ..., mounts: _Optional[_Iterable[_Union[_mount_pb2.Mount, _Mapping]]] = ..., repositories: _Optional[_Iterable[_Union[AgentRepository, _Mapping]]] = ..., max_steps: _Optional[int] = ..., max_wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_output_tokens: _Optional[int] = ..., models: _Optional[_Iterable[str]] = ..., parameters: _Optional[_Iterable[str]] = ..., environment: _Optional[str] = ..., mcp_servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServer, _Mapping]]] = ..., permissions: _Optional[_Union[_permission_pb2.PermissionRules, _Mapping]] = ..., subagents: _Optional[_Iterable[_Union[Subagent, _Mapping]]] = ..., skills: _Optional[_Iterable[str]] = ..., runtime: _Optional[str] = ..., claude_code: _Optional[_Union[ClaudeCodeOptions, _Mapping]] = ..., metadata_json: _Optional[str] = ...) -> None: ...

class ClaudeCodeOptions(_message.Message):
    __slots__ = ("preset_prompt",)
    PRESET_PROMPT_FIELD_NUMBER: _ClassVar[int]
    preset_prompt: bool
    def __init__(self, preset_prompt: _Optional[bool] = ...) -> None: ...

class Subagent(_message.Message):
    __slots__ = ("name", "description", "prompt", "tools", "model", "max_steps", "agent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    prompt: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    model: str
    max_steps: int
    agent: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., prompt: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., max_steps: _Optional[int] = ..., agent: _Optional[str] = ...) -> None: ...

class AgentCheckpoints(_message.Message):
    __slots__ = ("tools",)
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tools: _Optional[_Iterable[str]] = ...) -> None: ...

class AgentLimits(_message.Message):
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

class AgentRepository(_message.Message):
    __slots__ = ("url", "ref", "directory", "depth", "branch", "push")
    URL_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    url: str
    ref: str
    directory: str
    depth: int
    branch: str
    push: str
    def __init__(self, url: _Optional[str] = ..., ref: _Optional[str] = ..., directory: _Optional[str] = ..., depth: _Optional[int] = ..., branch: _Optional[str] = ..., push: _Optional[str] = ...) -> None: ...

class AgentNetworkRule(_message.Message):
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
    tls: str
    credential: str
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., ports: _Optional[_Iterable[int]] = ..., methods: _Optional[_Iterable[str]] = ..., paths: _Optional[_Iterable[str]] = ..., tls: _Optional[str] = ..., credential: _Optional[str] = ...) -> None: ...
