import datetime

from fairlead.common.v1 import content_pb2 as _content_pb2
from fairlead.common.v1 import mcp_pb2 as _mcp_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from fairlead.common.v1 import question_pb2 as _question_pb2
from fairlead.session.v1 import feedback_service_pb2 as _feedback_service_pb2
from fairlead.session.v1 import message_pb2 as _message_pb2
from fairlead.session.v1 import session_pb2 as _session_pb2
from fairlead.session.v1 import turn_pb2 as _turn_pb2
from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_UNSPECIFIED: _ClassVar[Decision]
    DECISION_ALLOW: _ClassVar[Decision]
    DECISION_ASK: _ClassVar[Decision]
    DECISION_DENY: _ClassVar[Decision]

class ApprovalKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_KIND_UNSPECIFIED: _ClassVar[ApprovalKind]
    APPROVAL_KIND_TOOL_CALL: _ClassVar[ApprovalKind]
    APPROVAL_KIND_BUDGET: _ClassVar[ApprovalKind]
    APPROVAL_KIND_PLAN: _ClassVar[ApprovalKind]

class WorkspaceMoveCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKSPACE_MOVE_CAUSE_UNSPECIFIED: _ClassVar[WorkspaceMoveCause]
    WORKSPACE_MOVE_CAUSE_NODE_LOST: _ClassVar[WorkspaceMoveCause]
    WORKSPACE_MOVE_CAUSE_PLANNED: _ClassVar[WorkspaceMoveCause]
DECISION_UNSPECIFIED: Decision
DECISION_ALLOW: Decision
DECISION_ASK: Decision
DECISION_DENY: Decision
APPROVAL_KIND_UNSPECIFIED: ApprovalKind
APPROVAL_KIND_TOOL_CALL: ApprovalKind
APPROVAL_KIND_BUDGET: ApprovalKind
APPROVAL_KIND_PLAN: ApprovalKind
WORKSPACE_MOVE_CAUSE_UNSPECIFIED: WorkspaceMoveCause
WORKSPACE_MOVE_CAUSE_NODE_LOST: WorkspaceMoveCause
WORKSPACE_MOVE_CAUSE_PLANNED: WorkspaceMoveCause
EVENT_NAME_FIELD_NUMBER: _ClassVar[int]
event_name: _descriptor.FieldDescriptor

class Event(_message.Message):
    __slots__ = ("first_seq", "seq", "time", "turn", "step", "session_created", "session_rewound", "session_compacted", "turn_queued", "turn_started", "turn_waiting", "turn_resumed", "turn_finished", "turn_steered", "step_started", "step_restarted", "step_finished", "text_started", "text_delta", "text_finished", "thinking_started", "thinking_delta", "thinking_finished", "tool_call_started", "tool_call_arguments_delta", "tool_call_arguments", "tool_call_decision", "tool_call_progress", "tool_call_output_delta", "tool_call_finished", "approval_requested", "approval_resolved", "question_requested", "question_resolved", "todo_updated", "checkpoint_created", "operation_started", "operation_progress", "operation_finished", "tool_call_network", "workspace_moved", "workspace_created", "repository_cloned", "environment_set_up", "repository_pushed", "repository_push_failed", "artifacts_changed", "mcp_server_changed", "subagent_started", "subagent_event", "subagent_finished", "permission_mode_changed", "skill_used", "feedback_given", "session_rewind_failed", "checkpoint_failed", "warning", "error")
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SESSION_CREATED_FIELD_NUMBER: _ClassVar[int]
    SESSION_REWOUND_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    TURN_QUEUED_FIELD_NUMBER: _ClassVar[int]
    TURN_STARTED_FIELD_NUMBER: _ClassVar[int]
    TURN_WAITING_FIELD_NUMBER: _ClassVar[int]
    TURN_RESUMED_FIELD_NUMBER: _ClassVar[int]
    TURN_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TURN_STEERED_FIELD_NUMBER: _ClassVar[int]
    STEP_STARTED_FIELD_NUMBER: _ClassVar[int]
    STEP_RESTARTED_FIELD_NUMBER: _ClassVar[int]
    STEP_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TEXT_STARTED_FIELD_NUMBER: _ClassVar[int]
    TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    TEXT_FINISHED_FIELD_NUMBER: _ClassVar[int]
    THINKING_STARTED_FIELD_NUMBER: _ClassVar[int]
    THINKING_DELTA_FIELD_NUMBER: _ClassVar[int]
    THINKING_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_STARTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ARGUMENTS_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_DECISION_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_OUTPUT_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FINISHED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    QUESTION_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    QUESTION_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    TODO_UPDATED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_CREATED_FIELD_NUMBER: _ClassVar[int]
    OPERATION_STARTED_FIELD_NUMBER: _ClassVar[int]
    OPERATION_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_NETWORK_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_MOVED_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_CREATED_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_CLONED_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_SET_UP_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_PUSHED_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_PUSH_FAILED_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVER_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_STARTED_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_EVENT_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_FINISHED_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_MODE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SKILL_USED_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_GIVEN_FIELD_NUMBER: _ClassVar[int]
    SESSION_REWIND_FAILED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FAILED_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    first_seq: int
    seq: int
    time: _timestamp_pb2.Timestamp
    turn: str
    step: int
    session_created: SessionCreated
    session_rewound: SessionRewound
    session_compacted: SessionCompacted
    turn_queued: TurnQueued
    turn_started: TurnStarted
    turn_waiting: TurnWaiting
    turn_resumed: TurnResumed
    turn_finished: TurnFinished
    turn_steered: TurnSteered
    step_started: StepStarted
    step_restarted: StepRestarted
    step_finished: StepFinished
    text_started: TextStarted
    text_delta: TextDelta
    text_finished: TextFinished
    thinking_started: ThinkingStarted
    thinking_delta: ThinkingDelta
    thinking_finished: ThinkingFinished
    tool_call_started: ToolCallStarted
    tool_call_arguments_delta: ToolCallArgumentsDelta
    tool_call_arguments: ToolCallArguments
    tool_call_decision: ToolCallDecision
    tool_call_progress: ToolCallProgress
    tool_call_output_delta: ToolCallOutputDelta
    tool_call_finished: ToolCallFinished
    approval_requested: ApprovalRequested
    approval_resolved: ApprovalResolved
    question_requested: QuestionRequested
    question_resolved: QuestionResolved
    todo_updated: TodoUpdated
    checkpoint_created: CheckpointCreated
    operation_started: OperationStarted
    operation_progress: OperationProgress
    operation_finished: OperationFinished
    tool_call_network: ToolCallNetwork
    workspace_moved: WorkspaceMoved
    workspace_created: WorkspaceCreated
    repository_cloned: RepositoryCloned
    environment_set_up: EnvironmentSetUp
    repository_pushed: RepositoryPushed
    repository_push_failed: RepositoryPushFailed
    artifacts_changed: ArtifactsChanged
    mcp_server_changed: McpServerChanged
    subagent_started: SubagentStarted
    subagent_event: SubagentEvent
    subagent_finished: SubagentFinished
    permission_mode_changed: PermissionModeChanged
    skill_used: SkillUsed
    feedback_given: FeedbackGiven
    session_rewind_failed: SessionRewindFailed
    checkpoint_failed: CheckpointFailed
    warning: Warning
    error: ErrorOccurred
    def __init__(self, first_seq: _Optional[int] = ..., seq: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., turn: _Optional[str] = ..., step: _Optional[int] = ..., session_created: _Optional[_Union[SessionCreated, _Mapping]] = ..., session_rewound: _Optional[_Union[SessionRewound, _Mapping]] = ..., session_compacted: _Optional[_Union[SessionCompacted, _Mapping]] = ..., turn_queued: _Optional[_Union[TurnQueued, _Mapping]] = ..., turn_started: _Optional[_Union[TurnStarted, _Mapping]] = ..., turn_waiting: _Optional[_Union[TurnWaiting, _Mapping]] = ..., turn_resumed: _Optional[_Union[TurnResumed, _Mapping]] = ..., turn_finished: _Optional[_Union[TurnFinished, _Mapping]] = ..., turn_steered: _Optional[_Union[TurnSteered, _Mapping]] = ..., step_started: _Optional[_Union[StepStarted, _Mapping]] = ..., step_restarted: _Optional[_Union[StepRestarted, _Mapping]] = ..., step_finished: _Optional[_Union[StepFinished, _Mapping]] = ..., text_started: _Optional[_Union[TextStarted, _Mapping]] = ..., text_delta: _Optional[_Union[TextDelta, _Mapping]] = ..., text_finished: _Optional[_Union[TextFinished, _Mapping]] = ..., thinking_started: _Optional[_Union[ThinkingStarted, _Mapping]] = ..., thinking_delta: _Optional[_Union[ThinkingDelta, _Mapping]] = ..., thinking_finished: _Optional[_Union[ThinkingFinished, _Mapping]] = ..., tool_call_started: _Optional[_Union[ToolCallStarted, _Mapping]] = ..., tool_call_arguments_delta: _Optional[_Union[ToolCallArgumentsDelta, _Mapping]] = ..., tool_call_arguments: _Optional[_Union[ToolCallArguments, _Mapping]] = ..., tool_call_decision: _Optional[_Union[ToolCallDecision, _Mapping]] = ..., tool_call_progress: _Optional[_Union[ToolCallProgress, _Mapping]] = ..., tool_call_output_delta: _Optional[_Union[ToolCallOutputDelta, _Mapping]] = ..., tool_call_finished: _Optional[_Union[ToolCallFinished, _Mapping]] = ..., approval_requested: _Optional[_Union[ApprovalRequested, _Mapping]] = ..., approval_resolved: _Optional[_Union[ApprovalResolved, _Mapping]] = ..., question_requested: _Optional[_Union[QuestionRequested, _Mapping]] = ..., question_resolved: _Optional[_Union[QuestionResolved, _Mapping]] = ..., todo_updated: _Optional[_Union[TodoUpdated, _Mapping]] = ..., checkpoint_created: _Optional[_Union[CheckpointCreated, _Mapping]] = ..., operation_started: _Optional[_Union[OperationStarted, _Mapping]] = ..., operation_progress: _Optional[_Union[OperationProgress, _Mapping]] = ..., operation_finished: _Optional[_Union[OperationFinished, _Mapping]] = ..., tool_call_network: _Optional[_Union[ToolCallNetwork, _Mapping]] = ..., workspace_moved: _Optional[_Union[WorkspaceMoved, _Mapping]] = ..., workspace_created: _Optional[_Union[WorkspaceCreated, _Mapping]] = ..., repository_cloned: _Optional[_Union[RepositoryCloned, _Mapping]] = ..., environment_set_up: _Optional[_Union[EnvironmentSetUp, _Mapping]] = ..., repository_pushed: _Optional[_Union[RepositoryPushed, _Mapping]] = ..., repository_push_failed: _Optional[_Union[RepositoryPushFailed, _Mapping]] = ..., artifacts_changed: _Optional[_Union[ArtifactsChanged, _Mapping]] = ..., mcp_server_changed: _Optional[_Union[McpServerChanged, _Mapping]] = ..., subagent_started: _Optional[_Union[SubagentStarted, _Mapping]] = ..., subagent_event: _Optional[_Union[SubagentEvent, _Mapping]] = ..., subagent_finished: _Optional[_Union[SubagentFinished, _Mapping]] = ..., permission_mode_changed: _Optional[_Union[PermissionModeChanged, _Mapping]] = ..., skill_used: _Optional[_Union[SkillUsed, _Mapping]] = ..., feedback_given: _Optional[_Union[FeedbackGiven, _Mapping]] = ..., session_rewind_failed: _Optional[_Union[SessionRewindFailed, _Mapping]] = ..., checkpoint_failed: _Optional[_Union[CheckpointFailed, _Mapping]] = ..., warning: _Optional[_Union[Warning, _Mapping]] = ..., error: _Optional[_Union[ErrorOccurred, _Mapping]] = ...) -> None: ...

class McpServerChanged(_message.Message):
    __slots__ = ("server", "state", "message", "tools")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    server: str
    state: _mcp_pb2.McpServerState
    message: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, server: _Optional[str] = ..., state: _Optional[_Union[_mcp_pb2.McpServerState, str]] = ..., message: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ...) -> None: ...

class SessionCreated(_message.Message):
    __slots__ = ("agent", "greeting", "forked_from", "imported")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    GREETING_FIELD_NUMBER: _ClassVar[int]
    FORKED_FROM_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_FIELD_NUMBER: _ClassVar[int]
    agent: str
    greeting: str
    forked_from: str
    imported: bool
    def __init__(self, agent: _Optional[str] = ..., greeting: _Optional[str] = ..., forked_from: _Optional[str] = ..., imported: _Optional[bool] = ...) -> None: ...

class SessionRewound(_message.Message):
    __slots__ = ("void_first_seq", "void_last_seq", "head", "undone_turn", "checkpoint", "rewind", "before_turn")
    VOID_FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    VOID_LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    UNDONE_TURN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    REWIND_FIELD_NUMBER: _ClassVar[int]
    BEFORE_TURN_FIELD_NUMBER: _ClassVar[int]
    void_first_seq: int
    void_last_seq: int
    head: str
    undone_turn: str
    checkpoint: str
    rewind: str
    before_turn: str
    def __init__(self, void_first_seq: _Optional[int] = ..., void_last_seq: _Optional[int] = ..., head: _Optional[str] = ..., undone_turn: _Optional[str] = ..., checkpoint: _Optional[str] = ..., rewind: _Optional[str] = ..., before_turn: _Optional[str] = ...) -> None: ...

class SessionRewindFailed(_message.Message):
    __slots__ = ("rewind", "checkpoint", "reason", "message")
    REWIND_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    rewind: str
    checkpoint: str
    reason: str
    message: str
    def __init__(self, rewind: _Optional[str] = ..., checkpoint: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class SessionCompacted(_message.Message):
    __slots__ = ("tokens_before", "tokens_after", "message", "trigger", "method")
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    tokens_before: int
    tokens_after: int
    message: str
    trigger: str
    method: str
    def __init__(self, tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., message: _Optional[str] = ..., trigger: _Optional[str] = ..., method: _Optional[str] = ...) -> None: ...

class TurnQueued(_message.Message):
    __slots__ = ("content", "user", "schedule", "resume", "call")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    user: str
    schedule: str
    resume: bool
    call: _message_pb2.ToolUse
    def __init__(self, content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., user: _Optional[str] = ..., schedule: _Optional[str] = ..., resume: _Optional[bool] = ..., call: _Optional[_Union[_message_pb2.ToolUse, _Mapping]] = ...) -> None: ...

class TurnStarted(_message.Message):
    __slots__ = ("model", "limits", "trace_id", "options", "runtime", "flags")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    model: str
    limits: _turn_pb2.TurnLimits
    trace_id: str
    options: _session_pb2.TurnOptions
    runtime: str
    flags: _containers.RepeatedCompositeFieldContainer[FlagDecision]
    def __init__(self, model: _Optional[str] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., trace_id: _Optional[str] = ..., options: _Optional[_Union[_session_pb2.TurnOptions, _Mapping]] = ..., runtime: _Optional[str] = ..., flags: _Optional[_Iterable[_Union[FlagDecision, _Mapping]]] = ...) -> None: ...

class FlagDecision(_message.Message):
    __slots__ = ("flag", "variant", "reason")
    FLAG_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flag: str
    variant: str
    reason: str
    def __init__(self, flag: _Optional[str] = ..., variant: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TurnWaiting(_message.Message):
    __slots__ = ("call_ids",)
    CALL_IDS_FIELD_NUMBER: _ClassVar[int]
    call_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, call_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class TurnResumed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TurnFinished(_message.Message):
    __slots__ = ("state", "error", "usage", "steps", "final_text", "output_json", "duration_ms", "model", "tool_errors", "call_result", "subagent_usage", "session_turns", "session_usage")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    FINAL_TEXT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOL_ERRORS_FIELD_NUMBER: _ClassVar[int]
    CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_USAGE_FIELD_NUMBER: _ClassVar[int]
    SESSION_TURNS_FIELD_NUMBER: _ClassVar[int]
    SESSION_USAGE_FIELD_NUMBER: _ClassVar[int]
    state: _turn_pb2.TurnState
    error: _turn_pb2.TurnError
    usage: _session_pb2.Usage
    steps: int
    final_text: str
    output_json: str
    duration_ms: int
    model: str
    tool_errors: int
    call_result: _message_pb2.ToolResult
    subagent_usage: _session_pb2.Usage
    session_turns: int
    session_usage: _session_pb2.Usage
    def __init__(self, state: _Optional[_Union[_turn_pb2.TurnState, str]] = ..., error: _Optional[_Union[_turn_pb2.TurnError, _Mapping]] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., steps: _Optional[int] = ..., final_text: _Optional[str] = ..., output_json: _Optional[str] = ..., duration_ms: _Optional[int] = ..., model: _Optional[str] = ..., tool_errors: _Optional[int] = ..., call_result: _Optional[_Union[_message_pb2.ToolResult, _Mapping]] = ..., subagent_usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., session_turns: _Optional[int] = ..., session_usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ...) -> None: ...

class TurnSteered(_message.Message):
    __slots__ = ("into",)
    INTO_FIELD_NUMBER: _ClassVar[int]
    into: str
    def __init__(self, into: _Optional[str] = ...) -> None: ...

class StepStarted(_message.Message):
    __slots__ = ("model", "attempt")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    model: str
    attempt: int
    def __init__(self, model: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class StepRestarted(_message.Message):
    __slots__ = ("void_first_seq", "void_last_seq", "reason")
    VOID_FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    VOID_LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    void_first_seq: int
    void_last_seq: int
    reason: str
    def __init__(self, void_first_seq: _Optional[int] = ..., void_last_seq: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class StepFinished(_message.Message):
    __slots__ = ("stop_reason", "usage", "message")
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    stop_reason: str
    usage: _session_pb2.Usage
    message: str
    def __init__(self, stop_reason: _Optional[str] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., message: _Optional[str] = ...) -> None: ...

class TextStarted(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: int
    def __init__(self, block: _Optional[int] = ...) -> None: ...

class TextDelta(_message.Message):
    __slots__ = ("block", "text")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    block: int
    text: str
    def __init__(self, block: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class TextFinished(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: int
    def __init__(self, block: _Optional[int] = ...) -> None: ...

class ThinkingStarted(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: int
    def __init__(self, block: _Optional[int] = ...) -> None: ...

class ThinkingDelta(_message.Message):
    __slots__ = ("block", "text")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    block: int
    text: str
    def __init__(self, block: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ThinkingFinished(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: int
    def __init__(self, block: _Optional[int] = ...) -> None: ...

class ToolCallStarted(_message.Message):
    __slots__ = ("block", "call_id", "tool")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    block: int
    call_id: str
    tool: str
    def __init__(self, block: _Optional[int] = ..., call_id: _Optional[str] = ..., tool: _Optional[str] = ...) -> None: ...

class ToolCallArgumentsDelta(_message.Message):
    __slots__ = ("call_id", "json")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    json: str
    def __init__(self, call_id: _Optional[str] = ..., json: _Optional[str] = ...) -> None: ...

class ToolCallArguments(_message.Message):
    __slots__ = ("call_id", "tool", "arguments_json")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    arguments_json: str
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ToolCallDecision(_message.Message):
    __slots__ = ("call_id", "decision", "rule")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    decision: Decision
    rule: str
    def __init__(self, call_id: _Optional[str] = ..., decision: _Optional[_Union[Decision, str]] = ..., rule: _Optional[str] = ...) -> None: ...

class ToolCallProgress(_message.Message):
    __slots__ = ("call_id", "message")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    message: str
    def __init__(self, call_id: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ToolCallOutputDelta(_message.Message):
    __slots__ = ("call_id", "stream", "data")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    stream: str
    data: bytes
    def __init__(self, call_id: _Optional[str] = ..., stream: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class ToolCallNetwork(_message.Message):
    __slots__ = ("call_id", "host", "port", "allowed", "outcome", "rule", "credential", "message", "connections", "sent_bytes", "received_bytes", "duration_ms", "start_time")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    host: str
    port: int
    allowed: bool
    outcome: str
    rule: str
    credential: str
    message: str
    connections: int
    sent_bytes: int
    received_bytes: int
    duration_ms: int
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, call_id: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., allowed: _Optional[bool] = ..., outcome: _Optional[str] = ..., rule: _Optional[str] = ..., credential: _Optional[str] = ..., message: _Optional[str] = ..., connections: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., received_bytes: _Optional[int] = ..., duration_ms: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ToolCallFinished(_message.Message):
    __slots__ = ("call_id", "tool", "outcome", "content", "duration_ms", "operation")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    outcome: _message_pb2.ToolOutcome
    content: _containers.RepeatedCompositeFieldContainer[_content_pb2.Content]
    duration_ms: int
    operation: str
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., outcome: _Optional[_Union[_message_pb2.ToolOutcome, str]] = ..., content: _Optional[_Iterable[_Union[_content_pb2.Content, _Mapping]]] = ..., duration_ms: _Optional[int] = ..., operation: _Optional[str] = ...) -> None: ...

class ApprovalRequested(_message.Message):
    __slots__ = ("call_id", "tool", "arguments_json", "digest", "rule", "kind", "message", "suggested_rules", "expire_time")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_RULES_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    arguments_json: str
    digest: str
    rule: str
    kind: ApprovalKind
    message: str
    suggested_rules: _containers.RepeatedScalarFieldContainer[str]
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., digest: _Optional[str] = ..., rule: _Optional[str] = ..., kind: _Optional[_Union[ApprovalKind, str]] = ..., message: _Optional[str] = ..., suggested_rules: _Optional[_Iterable[str]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PermissionModeChanged(_message.Message):
    __slots__ = ("mode", "before", "user", "call_id")
    MODE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    mode: _permission_pb2.PermissionMode
    before: _permission_pb2.PermissionMode
    user: str
    call_id: str
    def __init__(self, mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., before: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., user: _Optional[str] = ..., call_id: _Optional[str] = ...) -> None: ...

class ApprovalResolved(_message.Message):
    __slots__ = ("call_id", "approved", "user", "comment", "expired", "scope", "rule", "updated_arguments_json", "mode")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    approved: bool
    user: str
    comment: str
    expired: bool
    scope: _permission_pb2.ApprovalScope
    rule: str
    updated_arguments_json: str
    mode: _permission_pb2.PermissionMode
    def __init__(self, call_id: _Optional[str] = ..., approved: _Optional[bool] = ..., user: _Optional[str] = ..., comment: _Optional[str] = ..., expired: _Optional[bool] = ..., scope: _Optional[_Union[_permission_pb2.ApprovalScope, str]] = ..., rule: _Optional[str] = ..., updated_arguments_json: _Optional[str] = ..., mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ...) -> None: ...

class QuestionRequested(_message.Message):
    __slots__ = ("call_id", "tool", "question", "expire_time")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    question: _question_pb2.Question
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class QuestionResolved(_message.Message):
    __slots__ = ("call_id", "question_id", "action", "content_json", "user", "expired")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    question_id: str
    action: _question_pb2.QuestionAction
    content_json: str
    user: str
    expired: bool
    def __init__(self, call_id: _Optional[str] = ..., question_id: _Optional[str] = ..., action: _Optional[_Union[_question_pb2.QuestionAction, str]] = ..., content_json: _Optional[str] = ..., user: _Optional[str] = ..., expired: _Optional[bool] = ...) -> None: ...

class TodoUpdated(_message.Message):
    __slots__ = ("todos",)
    TODOS_FIELD_NUMBER: _ClassVar[int]
    todos: _containers.RepeatedCompositeFieldContainer[Todo]
    def __init__(self, todos: _Optional[_Iterable[_Union[Todo, _Mapping]]] = ...) -> None: ...

class Todo(_message.Message):
    __slots__ = ("content", "status", "active_form")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FORM_FIELD_NUMBER: _ClassVar[int]
    content: str
    status: str
    active_form: str
    def __init__(self, content: _Optional[str] = ..., status: _Optional[str] = ..., active_form: _Optional[str] = ...) -> None: ...

class CheckpointCreated(_message.Message):
    __slots__ = ("checkpoint", "description", "automatic", "head", "after_seq", "snapshot")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    checkpoint: str
    description: str
    automatic: bool
    head: str
    after_seq: int
    snapshot: str
    def __init__(self, checkpoint: _Optional[str] = ..., description: _Optional[str] = ..., automatic: _Optional[bool] = ..., head: _Optional[str] = ..., after_seq: _Optional[int] = ..., snapshot: _Optional[str] = ...) -> None: ...

class CheckpointFailed(_message.Message):
    __slots__ = ("checkpoint", "reason", "message")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    checkpoint: str
    reason: str
    message: str
    def __init__(self, checkpoint: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class OperationStarted(_message.Message):
    __slots__ = ("operation", "call_id", "tool")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    operation: str
    call_id: str
    tool: str
    def __init__(self, operation: _Optional[str] = ..., call_id: _Optional[str] = ..., tool: _Optional[str] = ...) -> None: ...

class OperationProgress(_message.Message):
    __slots__ = ("operation", "message")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    operation: str
    message: str
    def __init__(self, operation: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class OperationFinished(_message.Message):
    __slots__ = ("operation", "state", "message", "call_id")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    operation: str
    state: str
    message: str
    call_id: str
    def __init__(self, operation: _Optional[str] = ..., state: _Optional[str] = ..., message: _Optional[str] = ..., call_id: _Optional[str] = ...) -> None: ...

class WorkspaceCreated(_message.Message):
    __slots__ = ("node", "generation")
    NODE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    node: str
    generation: int
    def __init__(self, node: _Optional[str] = ..., generation: _Optional[int] = ...) -> None: ...

class RepositoryCloned(_message.Message):
    __slots__ = ("directory", "url", "branch", "commit")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    directory: str
    url: str
    branch: str
    commit: str
    def __init__(self, directory: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ..., commit: _Optional[str] = ...) -> None: ...

class EnvironmentSetUp(_message.Message):
    __slots__ = ("environment", "version", "commands", "failure")
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    environment: str
    version: int
    commands: int
    failure: str
    def __init__(self, environment: _Optional[str] = ..., version: _Optional[int] = ..., commands: _Optional[int] = ..., failure: _Optional[str] = ...) -> None: ...

class RepositoryPushed(_message.Message):
    __slots__ = ("directory", "url", "ref", "old_commit", "new_commit")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    OLD_COMMIT_FIELD_NUMBER: _ClassVar[int]
    NEW_COMMIT_FIELD_NUMBER: _ClassVar[int]
    directory: str
    url: str
    ref: str
    old_commit: str
    new_commit: str
    def __init__(self, directory: _Optional[str] = ..., url: _Optional[str] = ..., ref: _Optional[str] = ..., old_commit: _Optional[str] = ..., new_commit: _Optional[str] = ...) -> None: ...

class RepositoryPushFailed(_message.Message):
    __slots__ = ("directory", "url", "branch", "reason", "message")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    directory: str
    url: str
    branch: str
    reason: str
    message: str
    def __init__(self, directory: _Optional[str] = ..., url: _Optional[str] = ..., branch: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class WorkspaceMoved(_message.Message):
    __slots__ = ("from_node", "to_node", "generation", "cause", "restored_turn", "restored_seq", "restored_time", "empty", "message")
    FROM_NODE_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    RESTORED_TURN_FIELD_NUMBER: _ClassVar[int]
    RESTORED_SEQ_FIELD_NUMBER: _ClassVar[int]
    RESTORED_TIME_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    from_node: str
    to_node: str
    generation: int
    cause: WorkspaceMoveCause
    restored_turn: str
    restored_seq: int
    restored_time: _timestamp_pb2.Timestamp
    empty: bool
    message: str
    def __init__(self, from_node: _Optional[str] = ..., to_node: _Optional[str] = ..., generation: _Optional[int] = ..., cause: _Optional[_Union[WorkspaceMoveCause, str]] = ..., restored_turn: _Optional[str] = ..., restored_seq: _Optional[int] = ..., restored_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., empty: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...

class ArtifactsChanged(_message.Message):
    __slots__ = ("artifacts",)
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    artifacts: _containers.RepeatedCompositeFieldContainer[Artifact]
    def __init__(self, artifacts: _Optional[_Iterable[_Union[Artifact, _Mapping]]] = ...) -> None: ...

class SkillUsed(_message.Message):
    __slots__ = ("call_id", "skill", "user", "version")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    skill: str
    user: str
    version: int
    def __init__(self, call_id: _Optional[str] = ..., skill: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class FeedbackGiven(_message.Message):
    __slots__ = ("feedback",)
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    feedback: _feedback_service_pb2.Feedback
    def __init__(self, feedback: _Optional[_Union[_feedback_service_pb2.Feedback, _Mapping]] = ...) -> None: ...

class Artifact(_message.Message):
    __slots__ = ("path", "size", "media_type", "etag", "uri", "modify_time")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    path: str
    size: int
    media_type: str
    etag: str
    uri: str
    modify_time: _timestamp_pb2.Timestamp
    def __init__(self, path: _Optional[str] = ..., size: _Optional[int] = ..., media_type: _Optional[str] = ..., etag: _Optional[str] = ..., uri: _Optional[str] = ..., modify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Warning(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ErrorOccurred(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class SubagentStarted(_message.Message):
    __slots__ = ("call_id", "session", "turn", "subagent", "description")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SUBAGENT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session: str
    turn: str
    subagent: str
    description: str
    def __init__(self, call_id: _Optional[str] = ..., session: _Optional[str] = ..., turn: _Optional[str] = ..., subagent: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class SubagentEvent(_message.Message):
    __slots__ = ("call_id", "event")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    event: Event
    def __init__(self, call_id: _Optional[str] = ..., event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class SubagentFinished(_message.Message):
    __slots__ = ("call_id", "session", "state", "error", "usage")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session: str
    state: _turn_pb2.TurnState
    error: _turn_pb2.TurnError
    usage: _session_pb2.Usage
    def __init__(self, call_id: _Optional[str] = ..., session: _Optional[str] = ..., state: _Optional[_Union[_turn_pb2.TurnState, str]] = ..., error: _Optional[_Union[_turn_pb2.TurnError, _Mapping]] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ...) -> None: ...
