"""Errors. Decide by their class, code and reason; message and hint are for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import grpc
from google.rpc import error_details_pb2, status_pb2


@dataclass(frozen=True)
class FieldViolation:
    """A field of a request that is wrong, and what is wrong with it."""

    field: str
    description: str


class FairleadError(Exception):
    """An error of Fairlead."""

    hint = ""
    retryable = False

    def __init__(self, message: str, *, code: str = "UNKNOWN", reason: str = "", domain: str = "", metadata: Mapping[str, str] | None = None,
                 fields: Sequence[FieldViolation] = (), retry_after: float = 0, http_status: int = 0, request_id: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.reason, self.domain, self.metadata = message, code, reason, domain, dict(metadata or {})
        self.fields, self.retry_after, self.http_status, self.request_id = list(fields), retry_after, http_status, request_id


class InvalidRequestError(FairleadError):
    """The request is wrong; `fields` says where."""

    hint = "Correct the request."


class AuthenticationError(FairleadError):
    """The credential is missing or wrong."""

    hint = "Set api_key, or the variable FAIRLEAD_API_KEY, to a valid key."


class PermissionDeniedError(FairleadError):
    """The credential does not allow it."""

    hint = "Use the key of a user who may do this."


class NotFoundError(FairleadError):
    """There is no such thing, or it is another tenant's."""


class ConflictError(FairleadError):
    """It is there already, or another caller was quicker."""

    hint = "Take another id or key, or read again and retry."


class StateError(FairleadError):
    """The state does not allow it now."""


class LimitError(FairleadError):
    """A limit is reached."""

    hint = "Wait and try again."
    retryable = True


class UnavailableError(FairleadError):
    """The server cannot answer now."""

    hint = "Try again with the same request_id."
    retryable = True


class NoConnectionError(UnavailableError):
    """No answer came."""

    hint = "Check the address, and that the server runs."


class ServerError(FairleadError):
    """The server failed."""

    hint = "Report the fault with request_id."


_CLASSES: dict[str, type[FairleadError]] = {
    "INVALID_ARGUMENT": InvalidRequestError, "OUT_OF_RANGE": InvalidRequestError, "UNIMPLEMENTED": InvalidRequestError,
    "UNAUTHENTICATED": AuthenticationError, "PERMISSION_DENIED": PermissionDeniedError, "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": ConflictError, "ABORTED": ConflictError, "FAILED_PRECONDITION": StateError, "RESOURCE_EXHAUSTED": LimitError,
    "UNAVAILABLE": UnavailableError, "DEADLINE_EXCEEDED": UnavailableError, "INTERNAL": ServerError, "DATA_LOSS": ServerError,
}
_CODES = {c.value[0]: c.name for c in grpc.StatusCode}
_HTTP = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED",
         502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


def of_json(text: str, http_status: int = 0, headers: Mapping[str, str] | None = None) -> FairleadError:
    """The error of a google.rpc.Status as JSON."""
    try:
        status: dict[str, Any] = json.loads(text)
        if not isinstance(status, dict):
            status = {}
    except ValueError:
        status = {"message": text[:500]}
    code = _CODES.get(status.get("code", -1)) or _HTTP.get(http_status, "INTERNAL" if http_status >= 500 else "UNKNOWN")
    details = status.get("details", [])
    info = next((d for d in details if "reason" in d), {})
    wait = (headers or {}).get("retry-after", "")
    return _CLASSES.get(code, FairleadError)(
        status.get("message") or f"the server answered with HTTP {http_status}", code=code, reason=info.get("reason", ""), domain=info.get("domain", ""),
        metadata=info.get("metadata"), fields=[FieldViolation(v.get("field", ""), v.get("description", "")) for d in details for v in d.get("fieldViolations", [])],
        retry_after=float(wait) if wait.isdigit() else 0, http_status=http_status, request_id=(headers or {}).get("x-request-id", ""))


def of_rpc(e: grpc.RpcError) -> FairleadError:
    """The error of an RPC."""
    code = e.code().name  # type: ignore[attr-defined]
    status = status_pb2.Status()
    for key, value in e.trailing_metadata() or ():  # type: ignore[attr-defined]
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    for d in status.details:
        for known in (info, bad, retry):
            if d.Is(known.DESCRIPTOR):
                d.Unpack(known)
    kind = NoConnectionError if code == "UNAVAILABLE" and not info.reason else _CLASSES.get(code, FairleadError)
    return kind(e.details() or code, code=code, reason=info.reason, domain=info.domain, metadata=info.metadata,  # type: ignore[attr-defined]
                fields=[FieldViolation(v.field, v.description) for v in bad.field_violations], retry_after=retry.retry_delay.ToTimedelta().total_seconds())
