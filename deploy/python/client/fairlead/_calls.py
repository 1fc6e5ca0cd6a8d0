"""The requests of both clients, and when a call is made again."""

from __future__ import annotations

import os
import random
import uuid
from typing import Any, Sequence, Union

from google.protobuf.message import Message

from fairlead.common.v1 import content_pb2
from fairlead.session.v1 import approval_pb2, event_pb2, session_pb2, session_service_pb2 as api, turn_pb2

from . import errors

Named = Union[str, session_pb2.Session, turn_pb2.Turn]
Approval = Union[event_pb2.ApprovalRequested, approval_pb2.PendingApproval]

SERVICE = api.DESCRIPTOR.services_by_name["SessionService"]
MODULES = [api, approval_pb2]


def name(of: Named) -> str:
    text = of if isinstance(of, str) else of.name
    return text if "/" in text else f"sessions/{text}"


def prepare(rpc: str, request: Message) -> tuple[Any, Message, Message]:
    """The RPC, its request with an idempotency key, and an empty answer."""
    method = SERVICE.methods_by_name[rpc]
    if "request_id" in request.DESCRIPTOR.fields_by_name and not request.request_id:  # type: ignore[attr-defined]
        request.request_id = uuid.uuid4().hex  # type: ignore[attr-defined]
    return method, request, next(getattr(m, method.output_type.name) for m in MODULES if hasattr(m, method.output_type.name))()


def session(agent: str, fields: dict[str, Any]) -> Message:
    session_id, request_id = fields.pop("session_id", ""), fields.pop("request_id", "")
    return api.CreateSessionRequest(session=session_pb2.Session(agent=agent, **fields), session_id=session_id, request_id=request_id)


def resolve(session: Named, approval: Approval, approved: bool, fields: dict[str, Any]) -> Message:
    return api.ResolveApprovalRequest(parent=name(session), call_id=approval.call_id, digest=approval.digest, approved=approved, **fields)


def result(session: Named, call_id: str, content: str | Sequence[content_pb2.Content], is_error: bool, request_id: str) -> Message:
    contents = [content_pb2.Content(text=content_pb2.Text(text=content))] if isinstance(content, str) else content
    return api.SubmitToolResultRequest(parent=name(session), call_id=call_id, content=contents, is_error=is_error, request_id=request_id)


def pause(attempt: int, error: errors.FairleadError) -> float:
    """How long to wait after a failed attempt, counted from 0."""
    return max(error.retry_after, min(5.0, 0.1 * 2 ** min(attempt, 10)) * random.uniform(0.5, 1))


def connection(base_url: str | None, api_key: str | None) -> tuple[str, str]:
    return base_url or os.environ.get("FAIRLEAD_BASE_URL") or "http://127.0.0.1:8080", api_key or os.environ.get("FAIRLEAD_API_KEY") or ""
