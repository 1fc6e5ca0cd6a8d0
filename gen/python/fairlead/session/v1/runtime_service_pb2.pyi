import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import message_pb2 as _message_pb2
from fairlead.session.v1 import session_pb2 as _session_pb2
from fairlead.session.v1 import turn_pb2 as _turn_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttachRequest(_message.Message):
    __slots__ = ("open", "alive", "drain", "ask", "delta", "message", "end")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    open: AttachOpen
    alive: AttachAlive
    drain: AttachDrain
    ask: RuntimeAsk
    delta: RuntimeDelta
    message: RuntimeMessage
    end: RuntimeEnd
    def __init__(self, open: _Optional[_Union[AttachOpen, _Mapping]] = ..., alive: _Optional[_Union[AttachAlive, _Mapping]] = ..., drain: _Optional[_Union[AttachDrain, _Mapping]] = ..., ask: _Optional[_Union[RuntimeAsk, _Mapping]] = ..., delta: _Optional[_Union[RuntimeDelta, _Mapping]] = ..., message: _Optional[_Union[RuntimeMessage, _Mapping]] = ..., end: _Optional[_Union[RuntimeEnd, _Mapping]] = ...) -> None: ...

class AttachOpen(_message.Message):
    __slots__ = ("runtime", "max_turns", "label")
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    MAX_TURNS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    runtime: str
    max_turns: int
    label: str
    def __init__(self, runtime: _Optional[str] = ..., max_turns: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class AttachAlive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AttachDrain(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RuntimeAsk(_message.Message):
    __slots__ = ("step", "system", "messages", "tools", "resume_point")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINT_FIELD_NUMBER: _ClassVar[int]
    step: int
    system: str
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    tools: _containers.RepeatedScalarFieldContainer[str]
    resume_point: bytes
    def __init__(self, step: _Optional[int] = ..., system: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., tools: _Optional[_Iterable[str]] = ..., resume_point: _Optional[bytes] = ...) -> None: ...

class RuntimeDelta(_message.Message):
    __slots__ = ("step", "text", "thinking")
    STEP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    step: int
    text: str
    thinking: str
    def __init__(self, step: _Optional[int] = ..., text: _Optional[str] = ..., thinking: _Optional[str] = ...) -> None: ...

class RuntimeMessage(_message.Message):
    __slots__ = ("step", "calls", "usage", "resume_point")
    STEP_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINT_FIELD_NUMBER: _ClassVar[int]
    step: int
    calls: _containers.RepeatedCompositeFieldContainer[RuntimeCall]
    usage: _session_pb2.Usage
    resume_point: bytes
    def __init__(self, step: _Optional[int] = ..., calls: _Optional[_Iterable[_Union[RuntimeCall, _Mapping]]] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ..., resume_point: _Optional[bytes] = ...) -> None: ...

class RuntimeCall(_message.Message):
    __slots__ = ("tool", "arguments_json")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments_json: str
    def __init__(self, tool: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class RuntimeEnd(_message.Message):
    __slots__ = ("step", "error")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    step: int
    error: str
    def __init__(self, step: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("opened", "alive", "drain", "conversation", "step", "model_delta", "answer", "leave")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MODEL_DELTA_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    opened: AttachOpened
    alive: AttachAlive
    drain: AttachDrain
    conversation: RuntimeConversation
    step: RuntimeStep
    model_delta: RuntimeModelDelta
    answer: RuntimeAnswer
    leave: RuntimeLeave
    def __init__(self, opened: _Optional[_Union[AttachOpened, _Mapping]] = ..., alive: _Optional[_Union[AttachAlive, _Mapping]] = ..., drain: _Optional[_Union[AttachDrain, _Mapping]] = ..., conversation: _Optional[_Union[RuntimeConversation, _Mapping]] = ..., step: _Optional[_Union[RuntimeStep, _Mapping]] = ..., model_delta: _Optional[_Union[RuntimeModelDelta, _Mapping]] = ..., answer: _Optional[_Union[RuntimeAnswer, _Mapping]] = ..., leave: _Optional[_Union[RuntimeLeave, _Mapping]] = ...) -> None: ...

class AttachOpened(_message.Message):
    __slots__ = ("alive_interval", "patience")
    ALIVE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_FIELD_NUMBER: _ClassVar[int]
    alive_interval: _duration_pb2.Duration
    patience: _duration_pb2.Duration
    def __init__(self, alive_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., patience: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RuntimeConversation(_message.Message):
    __slots__ = ("turn", "keep", "messages")
    TURN_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    turn: str
    keep: int
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    def __init__(self, turn: _Optional[str] = ..., keep: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ...) -> None: ...

class RuntimeStep(_message.Message):
    __slots__ = ("id", "turn", "number", "first", "resume_point", "agent", "user", "system", "tools", "limits", "usage")
    ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    id: int
    turn: str
    number: int
    first: bool
    resume_point: bytes
    agent: str
    user: str
    system: str
    tools: _containers.RepeatedCompositeFieldContainer[RuntimeTool]
    limits: _turn_pb2.TurnLimits
    usage: _session_pb2.Usage
    def __init__(self, id: _Optional[int] = ..., turn: _Optional[str] = ..., number: _Optional[int] = ..., first: _Optional[bool] = ..., resume_point: _Optional[bytes] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., system: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[RuntimeTool, _Mapping]]] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ...) -> None: ...

class RuntimeTool(_message.Message):
    __slots__ = ("name", "description", "input_schema_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    input_schema_json: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema_json: _Optional[str] = ...) -> None: ...

class RuntimeModelDelta(_message.Message):
    __slots__ = ("step", "attempt", "text", "thinking")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THINKING_FIELD_NUMBER: _ClassVar[int]
    step: int
    attempt: int
    text: str
    thinking: str
    def __init__(self, step: _Optional[int] = ..., attempt: _Optional[int] = ..., text: _Optional[str] = ..., thinking: _Optional[str] = ...) -> None: ...

class RuntimeAnswer(_message.Message):
    __slots__ = ("step", "message", "stop_reason", "usage")
    STEP_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    step: int
    message: _message_pb2.Message
    stop_reason: str
    usage: _session_pb2.Usage
    def __init__(self, step: _Optional[int] = ..., message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ..., stop_reason: _Optional[str] = ..., usage: _Optional[_Union[_session_pb2.Usage, _Mapping]] = ...) -> None: ...

class RuntimeLeave(_message.Message):
    __slots__ = ("turn", "fault")
    TURN_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    turn: str
    fault: RuntimeFault
    def __init__(self, turn: _Optional[str] = ..., fault: _Optional[_Union[RuntimeFault, _Mapping]] = ...) -> None: ...

class RuntimeFault(_message.Message):
    __slots__ = ("field", "message")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    field: str
    message: str
    def __init__(self, field: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
