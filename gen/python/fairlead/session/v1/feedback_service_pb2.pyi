import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FeedbackValue(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEEDBACK_VALUE_UNSPECIFIED: _ClassVar[FeedbackValue]
    FEEDBACK_VALUE_POSITIVE: _ClassVar[FeedbackValue]
    FEEDBACK_VALUE_NEGATIVE: _ClassVar[FeedbackValue]
FEEDBACK_VALUE_UNSPECIFIED: FeedbackValue
FEEDBACK_VALUE_POSITIVE: FeedbackValue
FEEDBACK_VALUE_NEGATIVE: FeedbackValue

class Feedback(_message.Message):
    __slots__ = ("name", "turn", "step", "value", "comment", "user", "trace_id", "create_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    turn: str
    step: int
    value: FeedbackValue
    comment: str
    user: str
    trace_id: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., turn: _Optional[str] = ..., step: _Optional[int] = ..., value: _Optional[_Union[FeedbackValue, str]] = ..., comment: _Optional[str] = ..., user: _Optional[str] = ..., trace_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateFeedbackRequest(_message.Message):
    __slots__ = ("parent", "feedback", "request_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    feedback: Feedback
    request_id: str
    def __init__(self, parent: _Optional[str] = ..., feedback: _Optional[_Union[Feedback, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateFeedbackResponse(_message.Message):
    __slots__ = ("feedback",)
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    feedback: Feedback
    def __init__(self, feedback: _Optional[_Union[Feedback, _Mapping]] = ...) -> None: ...

class ListFeedbackRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFeedbackResponse(_message.Message):
    __slots__ = ("feedback", "next_page_token")
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    feedback: _containers.RepeatedCompositeFieldContainer[Feedback]
    next_page_token: str
    def __init__(self, feedback: _Optional[_Iterable[_Union[Feedback, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
