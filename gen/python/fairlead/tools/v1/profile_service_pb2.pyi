import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.common.v1 import permission_pb2 as _permission_pb2
from fairlead.tools.v1 import call_service_pb2 as _call_service_pb2
from fairlead.tools.v1 import grant_service_pb2 as _grant_service_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.api import resource_pb2 as _resource_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProfileSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROFILE_SOURCE_UNSPECIFIED: _ClassVar[ProfileSource]
    PROFILE_SOURCE_BUILTIN: _ClassVar[ProfileSource]
    PROFILE_SOURCE_CONFIGURATION: _ClassVar[ProfileSource]
    PROFILE_SOURCE_API: _ClassVar[ProfileSource]
PROFILE_SOURCE_UNSPECIFIED: ProfileSource
PROFILE_SOURCE_BUILTIN: ProfileSource
PROFILE_SOURCE_CONFIGURATION: ProfileSource
PROFILE_SOURCE_API: ProfileSource

class Profile(_message.Message):
    __slots__ = ("name", "description", "rules", "source", "etag", "create_time", "update_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    rules: _permission_pb2.PermissionRules
    source: ProfileSource
    etag: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., rules: _Optional[_Union[_permission_pb2.PermissionRules, _Mapping]] = ..., source: _Optional[_Union[ProfileSource, str]] = ..., etag: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateProfileRequest(_message.Message):
    __slots__ = ("profile_id", "profile", "request_id")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    profile: Profile
    request_id: str
    def __init__(self, profile_id: _Optional[str] = ..., profile: _Optional[_Union[Profile, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: Profile
    def __init__(self, profile: _Optional[_Union[Profile, _Mapping]] = ...) -> None: ...

class GetProfileRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: Profile
    def __init__(self, profile: _Optional[_Union[Profile, _Mapping]] = ...) -> None: ...

class ListProfilesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListProfilesResponse(_message.Message):
    __slots__ = ("profiles", "next_page_token")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[Profile]
    next_page_token: str
    def __init__(self, profiles: _Optional[_Iterable[_Union[Profile, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateProfileRequest(_message.Message):
    __slots__ = ("name", "profile", "etag", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    profile: Profile
    etag: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., profile: _Optional[_Union[Profile, _Mapping]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: Profile
    def __init__(self, profile: _Optional[_Union[Profile, _Mapping]] = ...) -> None: ...

class DeleteProfileRequest(_message.Message):
    __slots__ = ("name", "etag", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    etag: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteProfileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainCallRequest(_message.Message):
    __slots__ = ("name", "tool", "arguments_json", "mode", "filters", "session")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    tool: str
    arguments_json: str
    mode: _permission_pb2.PermissionMode
    filters: _containers.RepeatedCompositeFieldContainer[_permission_pb2.PermissionRules]
    session: str
    def __init__(self, name: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., mode: _Optional[_Union[_permission_pb2.PermissionMode, str]] = ..., filters: _Optional[_Iterable[_Union[_permission_pb2.PermissionRules, _Mapping]]] = ..., session: _Optional[str] = ...) -> None: ...

class ExplainCallResponse(_message.Message):
    __slots__ = ("decision", "rule", "interrupt", "layers", "remedy", "suggested_rules", "grants")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_RULES_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    decision: _call_service_pb2.CallDecisionKind
    rule: str
    interrupt: bool
    layers: _containers.RepeatedCompositeFieldContainer[LayerDecision]
    remedy: str
    suggested_rules: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedCompositeFieldContainer[_grant_service_pb2.Grant]
    def __init__(self, decision: _Optional[_Union[_call_service_pb2.CallDecisionKind, str]] = ..., rule: _Optional[str] = ..., interrupt: _Optional[bool] = ..., layers: _Optional[_Iterable[_Union[LayerDecision, _Mapping]]] = ..., remedy: _Optional[str] = ..., suggested_rules: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[_Union[_grant_service_pb2.Grant, _Mapping]]] = ...) -> None: ...

class LayerDecision(_message.Message):
    __slots__ = ("layer", "decision", "rule")
    LAYER_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    layer: str
    decision: _call_service_pb2.CallDecisionKind
    rule: str
    def __init__(self, layer: _Optional[str] = ..., decision: _Optional[_Union[_call_service_pb2.CallDecisionKind, str]] = ..., rule: _Optional[str] = ...) -> None: ...
