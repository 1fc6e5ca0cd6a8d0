"""The client of programs with an event loop."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, AsyncGenerator, Callable, Sequence

import grpc
from google.protobuf.message import Message

from fairlead.common.v1 import content_pb2
from fairlead.session.v1 import approval_pb2, session_pb2, session_service_pb2 as api, turn_pb2

from . import _calls, errors, events
from ._calls import Approval, Named
from ._rest import AsyncRest
from ._rpc import AsyncRpc


class AsyncFairlead:
    """A client over REST and SSE, or over gRPC if it has a target, such as `127.0.0.1:9090`. The key is `FAIRLEAD_API_KEY` if missing."""

    def __init__(self, base_url: str | None = None, *, target: str | None = None, api_key: str | None = None,
                 credentials: grpc.ChannelCredentials | None = None, max_retries: int = 5) -> None:
        base_url, key = _calls.connection(base_url, api_key)
        token = f"Bearer {key}"
        self._max_retries = max_retries
        self._peer: AsyncRest | AsyncRpc = (
            AsyncRpc(target, [("authorization", token)] if key else [], credentials) if target else AsyncRest(base_url, {"authorization": token} if key else {}))

    async def __aenter__(self) -> AsyncFairlead:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._peer.close()

    async def call(self, rpc: str, request: Message) -> Any:
        """Makes any call of SessionService, again while the server cannot be reached, with one idempotency key."""
        prepared = _calls.prepare(rpc, request)
        for attempt in range(self._max_retries + 1):
            try:
                return await self._peer.call(*prepared)
            except errors.FairleadError as e:
                if not e.retryable or attempt == self._max_retries:
                    raise
                await asyncio.sleep(_calls.pause(attempt, e))
        raise AssertionError

    async def create_session(self, agent: str = "", **fields: Any) -> session_pb2.Session:
        """Makes a session. Fields are those of Session, and session_id and request_id."""
        return (await self.call("CreateSession", _calls.session(agent, fields))).session

    async def get_session(self, session: Named) -> session_pb2.Session:
        return (await self.call("GetSession", api.GetSessionRequest(name=_calls.name(session)))).session

    async def list_sessions(self, **filters: Any) -> AsyncGenerator[session_pb2.Session, None]:
        """All sessions that the filters of ListSessionsRequest let through."""
        request = api.ListSessionsRequest(**filters)
        while True:
            page = await self.call("ListSessions", request)
            for s in page.sessions:
                yield s
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def delete_session(self, session: Named) -> None:
        await self.call("DeleteSession", api.DeleteSessionRequest(name=_calls.name(session)))

    async def create_turn(self, session: Named, text: str = "", **fields: Any) -> turn_pb2.Turn:
        """Sends a message, and returns its turn at once. Fields are those of CreateTurnRequest."""
        return (await self.call("CreateTurn", api.CreateTurnRequest(parent=_calls.name(session), text=text, **fields))).turn

    async def get_turn(self, turn: Named) -> turn_pb2.Turn:
        return (await self.call("GetTurn", api.GetTurnRequest(name=_calls.name(turn)))).turn

    async def follow(self, session: Named, *, after_seq: int = 0, until: str = "",
               on_break: Callable[[errors.FairleadError, int], None] | None = None) -> AsyncGenerator[events.Event, None]:
        """The events, those that are there and those that come, across breaks; until the end of a turn, or for ever."""
        last, attempt = after_seq, 0
        while True:
            broken: errors.FairleadError = errors.NoConnectionError("the server ended the stream", code="UNAVAILABLE")
            try:
                async with aclosing(self._peer.events(_calls.name(session), last)) as stream:
                    async for e in stream:
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
            await asyncio.sleep(_calls.pause(attempt, broken))
            attempt += 1

    async def run(self, session: Named, text: str = "", **fields: Any) -> AsyncGenerator[events.Event, None]:
        """Sends a message, and follows its turn until its end. To stop reading stops nothing: `interrupt` does."""
        turn = await self.create_turn(session, text, **fields)
        async with aclosing(self.follow(session, after_seq=turn.after_seq, until=turn.name)) as stream:
            async for event in stream:
                yield event

    async def interrupt(self, session: Named, **fields: Any) -> str:
        """Stops the active turn, and returns its name; empty if there is none."""
        return (await self.call("InterruptSession", api.InterruptSessionRequest(name=_calls.name(session), **fields))).turn

    async def list_approvals(self, **filters: Any) -> Sequence[approval_pb2.PendingApproval]:
        """What waits for a person: a page of it."""
        return (await self.call("ListApprovals", approval_pb2.ListApprovalsRequest(**filters))).approvals

    async def approve(self, session: Named, approval: Approval, **fields: Any) -> None:
        """Allows what is asked. Fields are those of ResolveApprovalRequest."""
        await self.call("ResolveApproval", _calls.resolve(session, approval, True, fields))

    async def deny(self, session: Named, approval: Approval, comment: str = "") -> None:
        """Refuses it. The model gets the comment."""
        await self.call("ResolveApproval", _calls.resolve(session, approval, False, {"comment": comment}))

    async def answer_question(self, session: Named, **fields: Any) -> None:
        """Answers a question. Fields are those of AnswerQuestionRequest."""
        await self.call("AnswerQuestion", approval_pb2.AnswerQuestionRequest(parent=_calls.name(session), **fields))

    async def submit_tool_result(self, session: Named, call_id: str, content: str | Sequence[content_pb2.Content], *, is_error: bool = False, request_id: str = "") -> None:
        """Returns the result of a tool that the client runs, once `turn.waiting` names its call."""
        await self.call("SubmitToolResult", _calls.result(session, call_id, content, is_error, request_id))
