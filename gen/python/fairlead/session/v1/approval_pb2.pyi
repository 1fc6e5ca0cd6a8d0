import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import question_pb2 as _question_pb2
from fairlead.session.v1 import event_pb2 as _event_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PendingApproval(_message.Message):
    __slots__ = ("session", "turn", "call_id", "user", "kind", "tool", "arguments_json", "shortened", "digest", "rule", "suggested_rules", "message", "create_time", "expire_time", "question")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SHORTENED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_RULES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    session: str
    turn: str
    call_id: str
    user: str
    kind: _event_pb2.ApprovalKind
    tool: str
    arguments_json: str
    shortened: bool
    digest: str
    rule: str
    suggested_rules: _containers.RepeatedScalarFieldContainer[str]
    message: str
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    question: _question_pb2.Question
    def __init__(self, session: _Optional[str] = ..., turn: _Optional[str] = ..., call_id: _Optional[str] = ..., user: _Optional[str] = ..., kind: _Optional[_Union[_event_pb2.ApprovalKind, str]] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., shortened: _Optional[bool] = ..., digest: _Optional[str] = ..., rule: _Optional[str] = ..., suggested_rules: _Optional[_Iterable[str]] = ..., message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class AnswerQuestionRequest(_message.Message):
    __slots__ = ("parent", "call_id", "question_id", "action", "content_json", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    call_id: str
    question_id: str
    action: _question_pb2.QuestionAction
    content_json: str
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., call_id: _Optional[str] = ..., question_id: _Optional[str] = ..., action: _Optional[_Union[_question_pb2.QuestionAction, str]] = ..., content_json: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class AnswerQuestionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListApprovalsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "user", "session")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    user: str
    session: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., user: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class ListApprovalsResponse(_message.Message):
    __slots__ = ("approvals", "next_page_token")
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    approvals: _containers.RepeatedCompositeFieldContainer[PendingApproval]
    next_page_token: str
    def __init__(self, approvals: _Optional[_Iterable[_Union[PendingApproval, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
