import datetime

from buf.validate import validate_pb2 as _validate_pb2
from fairlead.common.v1 import access_pb2 as _access_pb2
from fairlead.session.v1 import session_service_pb2 as _session_service_pb2
from fairlead.session.v1 import turn_pb2 as _turn_pb2
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

class TriggerProof(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRIGGER_PROOF_UNSPECIFIED: _ClassVar[TriggerProof]
    TRIGGER_PROOF_SIGNATURE: _ClassVar[TriggerProof]
    TRIGGER_PROOF_ADDRESS: _ClassVar[TriggerProof]
TRIGGER_PROOF_UNSPECIFIED: TriggerProof
TRIGGER_PROOF_SIGNATURE: TriggerProof
TRIGGER_PROOF_ADDRESS: TriggerProof

class Trigger(_message.Message):
    __slots__ = ("name", "session", "agent", "text", "on_active", "limits", "proof", "user", "paused", "create_time", "old_secret_expire_time", "last_time", "last_turn", "last_error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ON_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OLD_SECRET_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TURN_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    session: str
    agent: str
    text: str
    on_active: _session_service_pb2.OnActive
    limits: _turn_pb2.TurnLimits
    proof: TriggerProof
    user: str
    paused: bool
    create_time: _timestamp_pb2.Timestamp
    old_secret_expire_time: _timestamp_pb2.Timestamp
    last_time: _timestamp_pb2.Timestamp
    last_turn: str
    last_error: str
    def __init__(self, name: _Optional[str] = ..., session: _Optional[str] = ..., agent: _Optional[str] = ..., text: _Optional[str] = ..., on_active: _Optional[_Union[_session_service_pb2.OnActive, str]] = ..., limits: _Optional[_Union[_turn_pb2.TurnLimits, _Mapping]] = ..., proof: _Optional[_Union[TriggerProof, str]] = ..., user: _Optional[str] = ..., paused: _Optional[bool] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., old_secret_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_turn: _Optional[str] = ..., last_error: _Optional[str] = ...) -> None: ...

class CreateTriggerRequest(_message.Message):
    __slots__ = ("trigger", "request_id")
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    request_id: str
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateTriggerResponse(_message.Message):
    __slots__ = ("trigger", "secret", "path")
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    secret: str
    path: str
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ..., secret: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GetTriggerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetTriggerResponse(_message.Message):
    __slots__ = ("trigger",)
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ...) -> None: ...

class ListTriggersRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTriggersResponse(_message.Message):
    __slots__ = ("triggers", "next_page_token")
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    triggers: _containers.RepeatedCompositeFieldContainer[Trigger]
    next_page_token: str
    def __init__(self, triggers: _Optional[_Iterable[_Union[Trigger, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PauseTriggerRequest(_message.Message):
    __slots__ = ("name", "paused", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    paused: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., paused: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class PauseTriggerResponse(_message.Message):
    __slots__ = ("trigger",)
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ...) -> None: ...

class RotateTriggerSecretRequest(_message.Message):
    __slots__ = ("name", "revoke_old", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVOKE_OLD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    revoke_old: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., revoke_old: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class RotateTriggerSecretResponse(_message.Message):
    __slots__ = ("trigger", "secret", "path")
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    secret: str
    path: str
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ..., secret: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class DeleteTriggerRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteTriggerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FireTriggerRequest(_message.Message):
    __slots__ = ("name", "payload", "delivery", "secret", "hub_signature", "webhook_timestamp", "webhook_signature", "content_type", "event")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    HUB_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    payload: bytes
    delivery: str
    secret: str
    hub_signature: str
    webhook_timestamp: str
    webhook_signature: str
    content_type: str
    event: str
    def __init__(self, name: _Optional[str] = ..., payload: _Optional[bytes] = ..., delivery: _Optional[str] = ..., secret: _Optional[str] = ..., hub_signature: _Optional[str] = ..., webhook_timestamp: _Optional[str] = ..., webhook_signature: _Optional[str] = ..., content_type: _Optional[str] = ..., event: _Optional[str] = ...) -> None: ...

class FireTriggerResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: str
    def __init__(self, turn: _Optional[str] = ...) -> None: ...
