"""RPCs over REST, as the annotations of the protos say, and events over SSE."""

from __future__ import annotations

import re
from typing import Any, AsyncGenerator, Generator, Optional
from urllib.parse import quote

import httpx
from google.api import annotations_pb2
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from fairlead.session.v1 import event_pb2

from . import errors

_SILENCE = httpx.Timeout(30, pool=None)  # the server says something each 5 seconds


def _request(method: MethodDescriptor, request: Message) -> dict[str, Any]:
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    if verb is None:
        raise ValueError(f"{method.full_name} has no path; use a client with a gRPC target")
    rest = json_format.MessageToDict(request, preserving_proto_field_name=True)

    def fill(m: re.Match[str]) -> str:
        rest.pop(m[1], None)
        return quote(getattr(request, m[1]), safe="/")

    path = re.sub(r"\{(\w+)(?:=[^}]*)?\}", fill, getattr(rule, verb))
    body: Any = None
    if rule.body == "*":
        body, rest = rest, {}
    elif rule.body:
        body = rest.pop(rule.body, {})
    query = {k: str(v).lower() if isinstance(v, bool) else v for k, v in rest.items()}
    return {"method": verb.upper(), "url": path, "params": query, **({} if body is None else {"json": body})}


def _answer(method: MethodDescriptor, answer: Message, response: httpx.Response) -> Message:
    if response.is_error:
        raise errors.of_json(response.text, response.status_code, response.headers)
    field = method.GetOptions().Extensions[annotations_pb2.http].response_body
    json_format.Parse(response.text or "{}", getattr(answer, field) if field else answer, ignore_unknown_fields=True)
    return answer


class _Frames:
    """Reads the lines of a stream of server-sent events."""

    def __init__(self) -> None:
        self._event, self._data = "", []

    def line(self, line: str) -> Optional[event_pb2.Event]:
        if line.startswith("event: "):
            self._event = line[7:]
        elif line.startswith("data: "):
            self._data.append(line[6:])
        elif not line and self._data:
            event, data = self._event, "\n".join(self._data)
            self._event, self._data = "", []
            if event == "stream.error":
                raise errors.of_json(data)
            return json_format.Parse(data, event_pb2.Event(), ignore_unknown_fields=True)
        return None


def _broken(e: httpx.HTTPError) -> errors.FairleadError:
    return errors.NoConnectionError(f"the server cannot be reached: {type(e).__name__} {e}", code="UNAVAILABLE")


def _stream(session: str, after: int) -> dict[str, Any]:
    return {"method": "GET", "url": f"/v1/{session}/events:stream", "params": {"after_seq": after}, "headers": {"accept": "text/event-stream"}, "timeout": _SILENCE}


class Rest:
    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=60)

    def call(self, method: MethodDescriptor, request: Message, answer: Message) -> Message:
        try:
            return _answer(method, answer, self._http.request(**_request(method, request)))
        except httpx.HTTPError as e:
            raise _broken(e) from e

    def events(self, session: str, after: int) -> Generator[event_pb2.Event, None, None]:
        frames = _Frames()
        try:
            with self._http.stream(**_stream(session, after)) as response:
                if response.is_error:
                    raise errors.of_json(response.read().decode(), response.status_code, response.headers)
                for line in response.iter_lines():
                    if event := frames.line(line):
                        yield event
        except httpx.HTTPError as e:
            raise _broken(e) from e

    def close(self) -> None:
        self._http.close()


class AsyncRest:
    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, headers=headers, timeout=60)

    async def call(self, method: MethodDescriptor, request: Message, answer: Message) -> Message:
        try:
            return _answer(method, answer, await self._http.request(**_request(method, request)))
        except httpx.HTTPError as e:
            raise _broken(e) from e

    async def events(self, session: str, after: int) -> AsyncGenerator[event_pb2.Event, None]:
        frames = _Frames()
        try:
            async with self._http.stream(**_stream(session, after)) as response:
                if response.is_error:
                    raise errors.of_json((await response.aread()).decode(), response.status_code, response.headers)
                async for line in response.aiter_lines():
                    if event := frames.line(line):
                        yield event
        except httpx.HTTPError as e:
            raise _broken(e) from e

    async def close(self) -> None:
        await self._http.aclose()
