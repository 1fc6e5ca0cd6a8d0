from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Content(_message.Message):
    __slots__ = ("text", "image", "document", "audio", "resource", "resource_link")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    AUDIO_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_LINK_FIELD_NUMBER: _ClassVar[int]
    text: Text
    image: Media
    document: Media
    audio: Media
    resource: Resource
    resource_link: ResourceLink
    def __init__(self, text: _Optional[_Union[Text, _Mapping]] = ..., image: _Optional[_Union[Media, _Mapping]] = ..., document: _Optional[_Union[Media, _Mapping]] = ..., audio: _Optional[_Union[Media, _Mapping]] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., resource_link: _Optional[_Union[ResourceLink, _Mapping]] = ...) -> None: ...

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

class Resource(_message.Message):
    __slots__ = ("uri", "media_type", "text", "data")
    URI_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    uri: str
    media_type: str
    text: str
    data: bytes
    def __init__(self, uri: _Optional[str] = ..., media_type: _Optional[str] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class ResourceLink(_message.Message):
    __slots__ = ("uri", "name", "title", "description", "media_type", "size")
    URI_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    uri: str
    name: str
    title: str
    description: str
    media_type: str
    size: int
    def __init__(self, uri: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...
