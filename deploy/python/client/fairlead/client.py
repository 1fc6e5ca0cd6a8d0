"""The client that waits for its answers."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Callable, Generator, Sequence

import grpc
from google.protobuf.message import Message

from fairlead.common.v1 import content_pb2
from fairlead.session.v1 import approval_pb2, session_pb2, session_service_pb2 as api, turn_pb2

from . import _calls, errors, events
from ._calls import Approval, Named
from ._rest import Rest
from ._rpc import Rpc


class Fairlead:
    """A client over REST and SSE, or over gRPC if it has a target, such as `127.0.0.1:9090`. The key is `FAIRLEAD_API_KEY` if missing."""

    def __init__(self, base_url: str | None = None, *, target: str | None = None, api_key: str | None = None,
                 credentials: grpc.ChannelCredentials | None = None, max_retries: int = 5) -> None:
        base_url, key = _calls.connection(base_url, api_key)
        token = f"Bearer {key}"
        self._max_retries = max_retries
        self._peer: Rest | Rpc = (
            Rpc(target, [("authorization", token)] if key else [], credentials) if target else Rest(base_url, {"authorization": token} if key else {}))

    def __enter__(self) -> Fairlead:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._peer.close()

    def call(self, rpc: str, request: Message) -> Any:
        """Makes any call of SessionService, again while the server cannot be reached, with one idempotency key."""
        prepared = _calls.prepare(rpc, request)
        for attempt in range(self._max_retries + 1):
            try:
                return self._peer.call(*prepared)
            except errors.FairleadError as e:
                if not e.retryable or attempt == self._max_retries:
                    raise
                time.sleep(_calls.pause(attempt, e))
        raise AssertionError

    def create_session(self, agent: str = "", **fields: Any) -> session_pb2.Session:
        """Makes a session. Fields are those of Session, and session_id and request_id."""
        return self.call("CreateSession", _calls.session(agent, fields)).session

    def get_session(self, session: Named) -> session_pb2.Session:
        return self.call("GetSession", api.GetSessionRequest(name=_calls.name(session))).session

    def list_sessions(self, **filters: Any) -> Generator[session_pb2.Session, None, None]:
        """All sessions that the filters of ListSessionsRequest let through."""
        request = api.ListSessionsRequest(**filters)
        while True:
            page = self.call("ListSessions", request)
            yield from page.sessions
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def delete_session(self, session: Named) -> None:
        self.call("DeleteSession", api.DeleteSessionRequest(name=_calls.name(session)))

    def create_turn(self, session: Named, text: str = "", **fields: Any) -> turn_pb2.Turn:
        """Sends a message, and returns its turn at once. Fields are those of CreateTurnRequest."""
        return self.call("CreateTurn", api.CreateTurnRequest(parent=_calls.name(session), text=text, **fields)).turn

    def get_turn(self, turn: Named) -> turn_pb2.Turn:
        return self.call("GetTurn", api.GetTurnRequest(name=_calls.name(turn))).turn

    def follow(self, session: Named, *, after_seq: int = 0, until: str = "",
               on_break: Callable[[errors.FairleadError, int], None] | None = None) -> Generator[events.Event, None, None]:
        """The events, those that are there and those that come, across breaks; until the end of a turn, or for ever."""
        last, attempt = after_seq, 0
        while True:
            broken: errors.FairleadError = errors.NoConnectionError("the server ended the stream", code="UNAVAILABLE")
            try:
                with closing(self._peer.events(_calls.name(session), last)) as stream:
                    for e in stream:
                        if e.seq <= last:
                            continue
                        last, attempt = e.seq, 0
                        yield events.of(e)
                        if until and e.turn == until and e.HasField("turn_finished"):
                            return
            except errors.FairleadError as e:
                if not e.retryable:
                    raise
                broken = e
            if on_break:
                on_break(broken, attempt)
            time.sleep(_calls.pause(attempt, broken))
            attempt += 1

    def run(self, session: Named, text: str = "", **fields: Any) -> Generator[events.Event, None, None]:
        """Sends a message, and follows its turn until its end. To stop reading stops nothing: `interrupt` does."""
        turn = self.create_turn(session, text, **fields)
        yield from self.follow(session, after_seq=turn.after_seq, until=turn.name)

    def interrupt(self, session: Named, **fields: Any) -> str:
        """Stops the active turn, and returns its name; empty if there is none."""
        return self.call("InterruptSession", api.InterruptSessionRequest(name=_calls.name(session), **fields)).turn

    def list_approvals(self, **filters: Any) -> Sequence[approval_pb2.PendingApproval]:
        """What waits for a person: a page of it."""
        return self.call("ListApprovals", approval_pb2.ListApprovalsRequest(**filters)).approvals

    def approve(self, session: Named, approval: Approval, **fields: Any) -> None:
        """Allows what is asked. Fields are those of ResolveApprovalRequest."""
        self.call("ResolveApproval", _calls.resolve(session, approval, True, fields))

    def deny(self, session: Named, approval: Approval, comment: str = "") -> None:
        """Refuses it. The model gets the comment."""
        self.call("ResolveApproval", _calls.resolve(session, approval, False, {"comment": comment}))

    def answer_question(self, session: Named, **fields: Any) -> None:
        """Answers a question. Fields are those of AnswerQuestionRequest."""
        self.call("AnswerQuestion", approval_pb2.AnswerQuestionRequest(parent=_calls.name(session), **fields))

    def submit_tool_result(self, session: Named, call_id: str, content: str | Sequence[content_pb2.Content], *, is_error: bool = False, request_id: str = "") -> None:
        """Returns the result of a tool that the client runs, once `turn.waiting` names its call."""
        self.call("SubmitToolResult", _calls.result(session, call_id, content, is_error, request_id))
