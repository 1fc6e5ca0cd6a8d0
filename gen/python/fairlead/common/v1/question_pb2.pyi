from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QuestionAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUESTION_ACTION_UNSPECIFIED: _ClassVar[QuestionAction]
    QUESTION_ACTION_ACCEPT: _ClassVar[QuestionAction]
    QUESTION_ACTION_DECLINE: _ClassVar[QuestionAction]
    QUESTION_ACTION_CANCEL: _ClassVar[QuestionAction]
QUESTION_ACTION_UNSPECIFIED: QuestionAction
QUESTION_ACTION_ACCEPT: QuestionAction
QUESTION_ACTION_DECLINE: QuestionAction
QUESTION_ACTION_CANCEL: QuestionAction

class Question(_message.Message):
    __slots__ = ("id", "message", "items", "schema_json", "url", "server", "key")
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    message: str
    items: _containers.RepeatedCompositeFieldContainer[QuestionItem]
    schema_json: str
    url: str
    server: str
    key: str
    def __init__(self, id: _Optional[str] = ..., message: _Optional[str] = ..., items: _Optional[_Iterable[_Union[QuestionItem, _Mapping]]] = ..., schema_json: _Optional[str] = ..., url: _Optional[str] = ..., server: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class QuestionItem(_message.Message):
    __slots__ = ("question", "header", "options", "multiple")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    question: str
    header: str
    options: _containers.RepeatedCompositeFieldContainer[QuestionOption]
    multiple: bool
    def __init__(self, question: _Optional[str] = ..., header: _Optional[str] = ..., options: _Optional[_Iterable[_Union[QuestionOption, _Mapping]]] = ..., multiple: _Optional[bool] = ...) -> None: ...

class QuestionOption(_message.Message):
    __slots__ = ("label", "description")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    label: str
    description: str
    def __init__(self, label: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class QuestionAnswer(_message.Message):
    __slots__ = ("id", "action", "content_json", "user")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: QuestionAction
    content_json: str
    user: str
    def __init__(self, id: _Optional[str] = ..., action: _Optional[_Union[QuestionAction, str]] = ..., content_json: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...
