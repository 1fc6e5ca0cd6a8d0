from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from fairlead.common.v1 import question_pb2 as _question_pb2
from fairlead.sandbox.v1 import exec_pb2 as _exec_pb2
from fairlead.tools.v1 import operation_pb2 as _operation_pb2
from fairlead.tools.v1 import tool_pb2 as _tool_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CallDecisionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALL_DECISION_KIND_UNSPECIFIED: _ClassVar[CallDecisionKind]
    CALL_DECISION_KIND_ALLOW: _ClassVar[CallDecisionKind]
    CALL_DECISION_KIND_ASK: _ClassVar[CallDecisionKind]
    CALL_DECISION_KIND_DENY: _ClassVar[CallDecisionKind]

class CallOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALL_OUTCOME_UNSPECIFIED: _ClassVar[CallOutcome]
    CALL_OUTCOME_OK: _ClassVar[CallOutcome]
    CALL_OUTCOME_ERROR: _ClassVar[CallOutcome]
    CALL_OUTCOME_DENIED: _ClassVar[CallOutcome]
    CALL_OUTCOME_REFUSED: _ClassVar[CallOutcome]
    CALL_OUTCOME_CANCELLED: _ClassVar[CallOutcome]
    CALL_OUTCOME_UNKNOWN: _ClassVar[CallOutcome]
CALL_DECISION_KIND_UNSPECIFIED: CallDecisionKind
CALL_DECISION_KIND_ALLOW: CallDecisionKind
CALL_DECISION_KIND_ASK: CallDecisionKind
CALL_DECISION_KIND_DENY: CallDecisionKind
CALL_OUTCOME_UNSPECIFIED: CallOutcome
CALL_OUTCOME_OK: CallOutcome
CALL_OUTCOME_ERROR: CallOutcome
CALL_OUTCOME_DENIED: CallOutcome
CALL_OUTCOME_REFUSED: CallOutcome
CALL_OUTCOME_CANCELLED: CallOutcome
CALL_OUTCOME_UNKNOWN: CallOutcome

class CallToolRequest(_message.Message):
    __slots__ = ("call", "tool", "arguments_json", "profile", "allowed_tools", "approval", "answer", "servers", "mode", "filters")
    CALL_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    tool: str
    arguments_json: str
    profile: str
    allowed_tools: _containers.RepeatedScalarFieldContainer[str]
    approval: Approval
    answer: _question_pb2.QuestionAnswer
    servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServer]
    mode: _permission_pb2.PermissionMode
    filters: _containers.RepeatedCompositeFieldContainer[_permission_pb2.PermissionRules]
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., profile: _Optional[str] = ..., allowed_tools: _Optional[_Iterable[str]] = ..., approval: _Optional[_Union[Approval, _Mapping]] = ..., answer: _Optional[_Union[_question_pb2.QuestionAnswer, _Mapping]] = ..., servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServer, _Mapping]]] = ..., mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., filters: _Optional[_Iterable[_Union[_permission_pb2.PermissionRules, _Mapping]]] = ...) -> None: ...

class Approval(_message.Message):
    __slots__ = ("digest", "approved", "comment", "user", "updated_arguments_json", "scope", "rule")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    UPDATED_ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    digest: str
    approved: bool
    comment: str
    user: str
    updated_arguments_json: str
    scope: _permission_pb2.ApprovalScope
    rule: str
    def __init__(self, digest: _Optional[str] = ..., approved: _Optional[bool] = ..., comment: _Optional[str] = ..., user: _Optional[str] = ..., updated_arguments_json: _Optional[str] = ..., scope: _Optional[_Union[_permission_pb2.ApprovalScope, str]] = ..., rule: _Optional[str] = ...) -> None: ...

class CallToolResponse(_message.Message):
    __slots__ = ("decision", "progress", "output", "result", "ask", "delegated", "question")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    DELEGATED_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    decision: CallDecision
    progress: CallProgress
    output: CallOutput
    result: CallResult
    ask: CallAsk
    delegated: CallDelegated
    question: _question_pb2.Question
    def __init__(self, decision: _Optional[_Union[CallDecision, _Mapping]] = ..., progress: _Optional[_Union[CallProgress, _Mapping]] = ..., output: _Optional[_Union[CallOutput, _Mapping]] = ..., result: _Optional[_Union[CallResult, _Mapping]] = ..., ask: _Optional[_Union[CallAsk, _Mapping]] = ..., delegated: _Optional[_Union[CallDelegated, _Mapping]] = ..., question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class CallDecision(_message.Message):
    __slots__ = ("decision", "rule")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    decision: CallDecisionKind
    rule: str
    def __init__(self, decision: _Optional[_Union[CallDecisionKind, str]] = ..., rule: _Optional[str] = ...) -> None: ...

class CallProgress(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class CallOutput(_message.Message):
    __slots__ = ("stream", "data")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    stream: str
    data: bytes
    def __init__(self, stream: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class CallResult(_message.Message):
    __slots__ = ("outcome", "content", "duration_ms", "operation", "observed", "network", "interrupt", "structured_json", "mcp_error")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    STRUCTURED_JSON_FIELD_NUMBER: _ClassVar[int]
    MCP_ERROR_FIELD_NUMBER: _ClassVar[int]
    outcome: CallOutcome
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    duration_ms: int
    operation: str
    observed: OperationStatus
    network: _containers.RepeatedCompositeFieldContainer[_exec_pb2.NetworkUse]
    interrupt: bool
    structured_json: str
    mcp_error: _mcp_pb2.McpError
    def __init__(self, outcome: _Optional[_Union[CallOutcome, str]] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., duration_ms: _Optional[int] = ..., operation: _Optional[str] = ..., observed: _Optional[_Union[OperationStatus, _Mapping]] = ..., network: _Optional[_Iterable[_Union[_exec_pb2.NetworkUse, _Mapping]]] = ..., interrupt: _Optional[bool] = ..., structured_json: _Optional[str] = ..., mcp_error: _Optional[_Union[_mcp_pb2.McpError, _Mapping]] = ...) -> None: ...

class OperationStatus(_message.Message):
    __slots__ = ("operation", "state", "progress")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    operation: str
    state: _operation_pb2.OperationState
    progress: str
    def __init__(self, operation: _Optional[str] = ..., state: _Optional[_Union[_operation_pb2.OperationState, str]] = ..., progress: _Optional[str] = ...) -> None: ...

class CallAsk(_message.Message):
    __slots__ = ("digest", "rule", "suggested_rules")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_RULES_FIELD_NUMBER: _ClassVar[int]
    digest: str
    rule: str
    suggested_rules: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, digest: _Optional[str] = ..., rule: _Optional[str] = ..., suggested_rules: _Optional[_Iterable[str]] = ...) -> None: ...

class CallDelegated(_message.Message):
    __slots__ = ("tool", "arguments_json")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments_json: str
    def __init__(self, tool: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ReportResultRequest(_message.Message):
    __slots__ = ("call", "result")
    CALL_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    result: CallResult
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., result: _Optional[_Union[CallResult, _Mapping]] = ...) -> None: ...

class ReportResultResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelCallRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class CancelCallResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: CallResult
    def __init__(self, result: _Optional[_Union[CallResult, _Mapping]] = ...) -> None: ...

class FenceSessionRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ...) -> None: ...

class FenceSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSessionToolsRequest(_message.Message):
    __slots__ = ("call", "servers", "allowed_tools", "page_size", "page_token", "contents", "profile", "filters")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServer]
    allowed_tools: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    contents: bool
    profile: str
    filters: _containers.RepeatedCompositeFieldContainer[_permission_pb2.PermissionRules]
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServer, _Mapping]]] = ..., allowed_tools: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., contents: _Optional[bool] = ..., profile: _Optional[str] = ..., filters: _Optional[_Iterable[_Union[_permission_pb2.PermissionRules, _Mapping]]] = ...) -> None: ...

class ListSessionToolsResponse(_message.Message):
    __slots__ = ("tools", "servers", "next_page_token")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[_tool_pb2.Tool]
    servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServerStatus]
    next_page_token: str
    def __init__(self, tools: _Optional[_Iterable[_Union[_tool_pb2.Tool, _Mapping]]] = ..., servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServerStatus, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class McpRequest(_message.Message):
    __slots__ = ("call", "servers", "allowed_tools", "profile", "mode", "filters", "server")
    CALL_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    servers: _containers.RepeatedCompositeFieldContainer[_mcp_pb2.McpServer]
    allowed_tools: _containers.RepeatedScalarFieldContainer[str]
    profile: str
    mode: _permission_pb2.PermissionMode
    filters: _containers.RepeatedCompositeFieldContainer[_permission_pb2.PermissionRules]
    server: str
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., servers: _Optional[_Iterable[_Union[_mcp_pb2.McpServer, _Mapping]]] = ..., allowed_tools: _Optional[_Iterable[str]] = ..., profile: _Optional[str] = ..., mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., filters: _Optional[_Iterable[_Union[_permission_pb2.PermissionRules, _Mapping]]] = ..., server: _Optional[str] = ...) -> None: ...

class CompleteMcpArgumentRequest(_message.Message):
    __slots__ = ("at", "argument")
    AT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    at: McpRequest
    argument: _mcp_pb2.McpArgument
    def __init__(self, at: _Optional[_Union[McpRequest, _Mapping]] = ..., argument: _Optional[_Union[_mcp_pb2.McpArgument, _Mapping]] = ...) -> None: ...

class CompleteMcpArgumentResponse(_message.Message):
    __slots__ = ("completion",)
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    completion: _mcp_pb2.McpCompletion
    def __init__(self, completion: _Optional[_Union[_mcp_pb2.McpCompletion, _Mapping]] = ...) -> None: ...

class WatchMcpResourceRequest(_message.Message):
    __slots__ = ("at", "uri")
    AT_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    at: McpRequest
    uri: str
    def __init__(self, at: _Optional[_Union[McpRequest, _Mapping]] = ..., uri: _Optional[str] = ...) -> None: ...

class WatchMcpResourceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckAgentsRequest(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[AgentNeeds]
    def __init__(self, agents: _Optional[_Iterable[_Union[AgentNeeds, _Mapping]]] = ...) -> None: ...

class AgentNeeds(_message.Message):
    __slots__ = ("agent", "profile", "tools", "permissions", "mcp_servers")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    agent: str
    profile: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    permissions: _permission_pb2.PermissionRules
    mcp_servers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent: _Optional[str] = ..., profile: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., permissions: _Optional[_Union[_permission_pb2.PermissionRules, _Mapping]] = ..., mcp_servers: _Optional[_Iterable[str]] = ...) -> None: ...

class CheckAgentsResponse(_message.Message):
    __slots__ = ("faults",)
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    faults: _containers.RepeatedCompositeFieldContainer[AgentFault]
    def __init__(self, faults: _Optional[_Iterable[_Union[AgentFault, _Mapping]]] = ...) -> None: ...

class AgentFault(_message.Message):
    __slots__ = ("agent", "message", "field")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    agent: str
    message: str
    field: str
    def __init__(self, agent: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ...) -> None: ...

class DeleteUserGrantsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteUserGrantsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteSessionCallsRequest(_message.Message):
    __slots__ = ("session", "next_epoch")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    session: str
    next_epoch: int
    def __init__(self, session: _Optional[str] = ..., next_epoch: _Optional[int] = ...) -> None: ...

class DeleteSessionCallsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
