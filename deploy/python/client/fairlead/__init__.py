"""The client of Fairlead: sessions, turns and typed events that go on across breaks, over SSE or gRPC.

    with Fairlead() as client:
        session = client.create_session("coder")
        for event in client.run(session, "hello"):
            print(event.seq, event.type)
"""

from .aio import AsyncFairlead
from .client import Fairlead
from .errors import (AuthenticationError, ConflictError, FairleadError, FieldViolation, InvalidRequestError, LimitError, NoConnectionError, NotFoundError,
                     PermissionDeniedError, ServerError, StateError, UnavailableError)
from .events import Event

__all__ = ["AsyncFairlead", "AuthenticationError", "ConflictError", "Event", "Fairlead", "FairleadError", "FieldViolation", "InvalidRequestError",
           "LimitError", "NoConnectionError", "NotFoundError", "PermissionDeniedError", "ServerError", "StateError", "UnavailableError"]
