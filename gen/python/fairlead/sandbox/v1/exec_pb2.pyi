import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import call_pb2 as _call_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NetworkOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETWORK_OUTCOME_UNSPECIFIED: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_DONE: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_DENIED: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_REFUSED_ADDRESS: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_BAD_REQUEST: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_FAILED: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_LIMITED: _ClassVar[NetworkOutcome]
    NETWORK_OUTCOME_ABORTED: _ClassVar[NetworkOutcome]

class ExitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXIT_REASON_UNSPECIFIED: _ClassVar[ExitReason]
    EXIT_REASON_EXITED: _ClassVar[ExitReason]
    EXIT_REASON_SIGNALED: _ClassVar[ExitReason]
    EXIT_REASON_TIMED_OUT: _ClassVar[ExitReason]
    EXIT_REASON_OUT_OF_MEMORY: _ClassVar[ExitReason]
    EXIT_REASON_CANCELLED: _ClassVar[ExitReason]
    EXIT_REASON_OUTPUT_LIMIT: _ClassVar[ExitReason]
    EXIT_REASON_WORKSPACE_LIMIT: _ClassVar[ExitReason]
    EXIT_REASON_NOT_STARTED: _ClassVar[ExitReason]
    EXIT_REASON_LOST: _ClassVar[ExitReason]
    EXIT_REASON_FILE_LIMIT: _ClassVar[ExitReason]
    EXIT_REASON_TERMINAL_LIMIT: _ClassVar[ExitReason]
NETWORK_OUTCOME_UNSPECIFIED: NetworkOutcome
NETWORK_OUTCOME_DONE: NetworkOutcome
NETWORK_OUTCOME_DENIED: NetworkOutcome
NETWORK_OUTCOME_REFUSED_ADDRESS: NetworkOutcome
NETWORK_OUTCOME_BAD_REQUEST: NetworkOutcome
NETWORK_OUTCOME_FAILED: NetworkOutcome
NETWORK_OUTCOME_LIMITED: NetworkOutcome
NETWORK_OUTCOME_ABORTED: NetworkOutcome
EXIT_REASON_UNSPECIFIED: ExitReason
EXIT_REASON_EXITED: ExitReason
EXIT_REASON_SIGNALED: ExitReason
EXIT_REASON_TIMED_OUT: ExitReason
EXIT_REASON_OUT_OF_MEMORY: ExitReason
EXIT_REASON_CANCELLED: ExitReason
EXIT_REASON_OUTPUT_LIMIT: ExitReason
EXIT_REASON_WORKSPACE_LIMIT: ExitReason
EXIT_REASON_NOT_STARTED: ExitReason
EXIT_REASON_LOST: ExitReason
EXIT_REASON_FILE_LIMIT: ExitReason
EXIT_REASON_TERMINAL_LIMIT: ExitReason

class ExecRequest(_message.Message):
    __slots__ = ("start", "attach", "stdin", "signal", "resize")
    START_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    start: ExecStart
    attach: ExecAttach
    stdin: ExecStdin
    signal: ExecSignal
    resize: TerminalSize
    def __init__(self, start: _Optional[_Union[ExecStart, _Mapping]] = ..., attach: _Optional[_Union[ExecAttach, _Mapping]] = ..., stdin: _Optional[_Union[ExecStdin, _Mapping]] = ..., signal: _Optional[_Union[ExecSignal, _Mapping]] = ..., resize: _Optional[_Union[TerminalSize, _Mapping]] = ...) -> None: ...

class ExecStart(_message.Message):
    __slots__ = ("call", "argv", "env", "cwd", "timeout", "limits", "terminal", "stdin", "shorten_timeout", "piped")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CALL_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    SHORTEN_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    PIPED_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    argv: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    cwd: str
    timeout: _duration_pb2.Duration
    limits: ExecLimits
    terminal: TerminalSize
    stdin: bool
    shorten_timeout: bool
    piped: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., argv: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., limits: _Optional[_Union[ExecLimits, _Mapping]] = ..., terminal: _Optional[_Union[TerminalSize, _Mapping]] = ..., stdin: _Optional[bool] = ..., shorten_timeout: _Optional[bool] = ..., piped: _Optional[bool] = ...) -> None: ...

class ExecLimits(_message.Message):
    __slots__ = ("memory_bytes", "processes", "output_bytes", "cpu_millis", "file_bytes", "open_files", "flood_bytes", "workspace_bytes", "workspace_inodes")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLIS_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    FLOOD_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_INODES_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    processes: int
    output_bytes: int
    cpu_millis: int
    file_bytes: int
    open_files: int
    flood_bytes: int
    workspace_bytes: int
    workspace_inodes: int
    def __init__(self, memory_bytes: _Optional[int] = ..., processes: _Optional[int] = ..., output_bytes: _Optional[int] = ..., cpu_millis: _Optional[int] = ..., file_bytes: _Optional[int] = ..., open_files: _Optional[int] = ..., flood_bytes: _Optional[int] = ..., workspace_bytes: _Optional[int] = ..., workspace_inodes: _Optional[int] = ...) -> None: ...

class ExecAttach(_message.Message):
    __slots__ = ("call", "stdout_offset", "stderr_offset", "operation")
    CALL_FIELD_NUMBER: _ClassVar[int]
    STDOUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STDERR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    stdout_offset: int
    stderr_offset: int
    operation: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., stdout_offset: _Optional[int] = ..., stderr_offset: _Optional[int] = ..., operation: _Optional[bool] = ...) -> None: ...

class ExecStdin(_message.Message):
    __slots__ = ("data", "close")
    DATA_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    close: bool
    def __init__(self, data: _Optional[bytes] = ..., close: _Optional[bool] = ...) -> None: ...

class ExecSignal(_message.Message):
    __slots__ = ("signal",)
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    signal: int
    def __init__(self, signal: _Optional[int] = ...) -> None: ...

class TerminalSize(_message.Message):
    __slots__ = ("rows", "columns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...

class ExecResponse(_message.Message):
    __slots__ = ("started", "stdout", "stderr", "exited")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    started: ExecStarted
    stdout: ExecOutput
    stderr: ExecOutput
    exited: ExecExited
    def __init__(self, started: _Optional[_Union[ExecStarted, _Mapping]] = ..., stdout: _Optional[_Union[ExecOutput, _Mapping]] = ..., stderr: _Optional[_Union[ExecOutput, _Mapping]] = ..., exited: _Optional[_Union[ExecExited, _Mapping]] = ...) -> None: ...

class ExecStarted(_message.Message):
    __slots__ = ("attached",)
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    attached: bool
    def __init__(self, attached: _Optional[bool] = ...) -> None: ...

class ExecOutput(_message.Message):
    __slots__ = ("offset", "data")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class ExecExited(_message.Message):
    __slots__ = ("reason", "exit_code", "signal", "message", "wall_time", "cpu_time", "max_memory_bytes", "output_truncated", "network", "cpu_throttled_time", "limits_hit")
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    CPU_THROTTLED_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMITS_HIT_FIELD_NUMBER: _ClassVar[int]
    reason: ExitReason
    exit_code: int
    signal: int
    message: str
    wall_time: _duration_pb2.Duration
    cpu_time: _duration_pb2.Duration
    max_memory_bytes: int
    output_truncated: bool
    network: _containers.RepeatedCompositeFieldContainer[NetworkUse]
    cpu_throttled_time: _duration_pb2.Duration
    limits_hit: _containers.RepeatedCompositeFieldContainer[LimitHit]
    def __init__(self, reason: _Optional[_Union[ExitReason, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., message: _Optional[str] = ..., wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cpu_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_memory_bytes: _Optional[int] = ..., output_truncated: _Optional[bool] = ..., network: _Optional[_Iterable[_Union[NetworkUse, _Mapping]]] = ..., cpu_throttled_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., limits_hit: _Optional[_Iterable[_Union[LimitHit, _Mapping]]] = ...) -> None: ...

class LimitHit(_message.Message):
    __slots__ = ("limit", "message")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    limit: str
    message: str
    def __init__(self, limit: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class NetworkUse(_message.Message):
    __slots__ = ("host", "port", "rule", "credential", "outcome", "message", "connections", "sent_bytes", "received_bytes", "duration", "start_time")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    rule: str
    credential: str
    outcome: NetworkOutcome
    message: str
    connections: int
    sent_bytes: int
    received_bytes: int
    duration: _duration_pb2.Duration
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ..., rule: _Optional[str] = ..., credential: _Optional[str] = ..., outcome: _Optional[_Union[NetworkOutcome, str]] = ..., message: _Optional[str] = ..., connections: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., received_bytes: _Optional[int] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListExecsRequest(_message.Message):
    __slots__ = ("session", "page_size", "page_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: str
    page_size: int
    page_token: str
    def __init__(self, session: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListExecsResponse(_message.Message):
    __slots__ = ("execs", "next_page_token")
    EXECS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    execs: _containers.RepeatedCompositeFieldContainer[ExecInfo]
    next_page_token: str
    def __init__(self, execs: _Optional[_Iterable[_Union[ExecInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ExecInfo(_message.Message):
    __slots__ = ("call_id", "argv", "exited")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    exited: ExecExited
    def __init__(self, call_id: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., exited: _Optional[_Union[ExecExited, _Mapping]] = ...) -> None: ...

class AcknowledgeExecRequest(_message.Message):
    __slots__ = ("call", "operation")
    CALL_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    operation: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., operation: _Optional[bool] = ...) -> None: ...

class AcknowledgeExecResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelExecRequest(_message.Message):
    __slots__ = ("call", "operation")
    CALL_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    call: _call_pb2.CallRef
    operation: bool
    def __init__(self, call: _Optional[_Union[_call_pb2.CallRef, _Mapping]] = ..., operation: _Optional[bool] = ...) -> None: ...

class CancelExecResponse(_message.Message):
    __slots__ = ("exited",)
    EXITED_FIELD_NUMBER: _ClassVar[int]
    exited: ExecExited
    def __init__(self, exited: _Optional[_Union[ExecExited, _Mapping]] = ...) -> None: ...
