from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Content(_message.Message):
    __slots__ = ("text", "image", "document")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    text: Text
    image: Media
    document: Media
    def __init__(self, text: _Optional[_Union[Text, _Mapping]] = ..., image: _Optional[_Union[Media, _Mapping]] = ..., document: _Optional[_Union[Media, _Mapping]] = ...) -> None: ...

class Text(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class Media(_message.Message):
    __slots__ = ("media_type", "data", "title", "uri")
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    data: bytes
    title: str
    uri: str
    def __init__(self, media_type: _Optional[str] = ..., data: _Optional[bytes] = ..., title: _Optional[str] = ..., uri: _Optional[str] = ...) -> None: ...
