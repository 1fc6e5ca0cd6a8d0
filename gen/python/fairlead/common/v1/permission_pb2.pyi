from buf.validate import validate_pb2 as _validate_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class PermissionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PERMISSION_MODE_UNSPECIFIED: _ClassVar[PermissionMode]
    PERMISSION_MODE_DEFAULT: _ClassVar[PermissionMode]
    PERMISSION_MODE_ACCEPT_EDITS: _ClassVar[PermissionMode]
    PERMISSION_MODE_PLAN: _ClassVar[PermissionMode]
    PERMISSION_MODE_BYPASS: _ClassVar[PermissionMode]

class ApprovalScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_SCOPE_UNSPECIFIED: _ClassVar[ApprovalScope]
    APPROVAL_SCOPE_ONCE: _ClassVar[ApprovalScope]
    APPROVAL_SCOPE_SESSION: _ClassVar[ApprovalScope]
    APPROVAL_SCOPE_ALWAYS: _ClassVar[ApprovalScope]
PERMISSION_MODE_UNSPECIFIED: PermissionMode
PERMISSION_MODE_DEFAULT: PermissionMode
PERMISSION_MODE_ACCEPT_EDITS: PermissionMode
PERMISSION_MODE_PLAN: PermissionMode
PERMISSION_MODE_BYPASS: PermissionMode
APPROVAL_SCOPE_UNSPECIFIED: ApprovalScope
APPROVAL_SCOPE_ONCE: ApprovalScope
APPROVAL_SCOPE_SESSION: ApprovalScope
APPROVAL_SCOPE_ALWAYS: ApprovalScope

class PermissionRules(_message.Message):
    __slots__ = ("allow", "ask", "deny", "interrupt", "enabled_tools", "disabled_tools", "directories")
    ALLOW_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    DENY_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    DISABLED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    allow: _containers.RepeatedScalarFieldContainer[str]
    ask: _containers.RepeatedScalarFieldContainer[str]
    deny: _containers.RepeatedScalarFieldContainer[str]
    interrupt: _containers.RepeatedScalarFieldContainer[str]
    enabled_tools: _containers.RepeatedScalarFieldContainer[str]
    disabled_tools: _containers.RepeatedScalarFieldContainer[str]
    directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, allow: _Optional[_Iterable[str]] = ..., ask: _Optional[_Iterable[str]] = ..., deny: _Optional[_Iterable[str]] = ..., interrupt: _Optional[_Iterable[str]] = ..., enabled_tools: _Optional[_Iterable[str]] = ..., disabled_tools: _Optional[_Iterable[str]] = ..., directories: _Optional[_Iterable[str]] = ...) -> None: ...
