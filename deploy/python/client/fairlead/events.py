"""The events of a session's log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Optional

from google.protobuf.message import Message

from fairlead.session.v1 import event_pb2

__all__ = ["Event"]

_NAMES = {f.name: f.GetOptions().Extensions[event_pb2.event_name] for f in event_pb2.Event.DESCRIPTOR.oneofs_by_name["body"].fields}


@dataclass(frozen=True)
class Event:
    """An event. `data` is the message of `type`, such as `event_pb2.TextDelta`; a newer server may send types without one."""

    seq: int  # the last sequence number that it covers: what a client resumes after
    first_seq: int
    type: str  # such as "text.delta"
    time: datetime
    turn: str  # empty for an event of the session itself
    step: int  # 0 for an event of the turn itself
    data: Optional[Message]


def of(e: event_pb2.Event) -> Event:
    field = e.WhichOneof("body")
    return Event(e.seq, e.first_seq, _NAMES[field] if field else "unknown", e.time.ToDatetime(), e.turn, e.step, getattr(e, field) if field else None)
