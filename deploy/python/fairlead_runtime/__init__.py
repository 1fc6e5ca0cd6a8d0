"""Drives turns of Fairlead agents whose runtime is `attached:{name}`.

    async def handle(turn):
        while (answer := await turn.ask()).calls:
            await turn.results()

    await Runtime("127.0.0.1:9090", "mine", handle).run()

The handler is called with a turn, and again when the turn goes on after it has returned. It holds nothing that
Fairlead does not have: when this process dies, another one gets the conversation so far and the resume point.
It needs the packages grpcio and protobuf, and the generated code of Fairlead (gen/python) on the path.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import grpc
from fairlead.session.v1 import message_pb2, runtime_service_pb2 as api, runtime_service_pb2_grpc as stubs, session_pb2

__all__ = ["Answer", "Call", "Fault", "Left", "Runtime", "Turn"]

log = logging.getLogger(__name__)

_OPTIONS = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20)]
_FINAL = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED}
_DELTA = 16 << 10  # characters of a piece, at most 64 KiB


class Left(Exception):
    """This process has no part in the turn any more."""


class Fault(Left):
    """What this process said was wrong."""


@dataclass
class Call:
    """A call of a tool."""

    tool: str
    arguments: dict
    id: str = ""


@dataclass
class Answer:
    """A model's answer. Fairlead makes its calls: `Turn.results` has what they return."""

    message: message_pb2.Message
    stop_reason: str
    usage: session_pb2.Usage

    @property
    def text(self) -> str:
        return text_of(self.message)

    @property
    def calls(self) -> list[Call]:
        return calls_of(self.message)


def text_of(message: message_pb2.Message) -> str:
    """The text of a message."""
    return "".join(b.content.text.text for b in message.blocks if b.WhichOneof("kind") == "content")


def calls_of(message: message_pb2.Message) -> list[Call]:
    """The calls of a message. Arguments that are no JSON object count as none."""
    calls = []
    for b in message.blocks:
        if b.WhichOneof("kind") == "tool_use":
            try:
                arguments = json.loads(b.tool_use.arguments_json)
            except ValueError:
                arguments = {}
            calls.append(Call(b.tool_use.tool, arguments if isinstance(arguments, dict) else {}, b.tool_use.call_id))
    return calls


def result_text(result: message_pb2.ToolResult) -> str:
    """The text of a call's result."""
    return "".join(c.text.text for c in result.content)


@dataclass
class Turn:
    """A turn that this process drives. `messages` is the conversation as of the last step."""

    name: str
    messages: list[message_pb2.Message] = field(default_factory=list)
    step: api.RuntimeStep | None = None
    on_text: Callable[[str], None] | None = None  # gets the text of the model's answers as it comes

    def __post_init__(self) -> None:
        self._send: Callable[[api.AttachRequest], Awaitable[None]]
        self._steps: asyncio.Queue[api.RuntimeStep] = asyncio.Queue()
        self._open = False  # the step has no answer yet
        self._answer: asyncio.Future[api.RuntimeAnswer] | None = None
        self._why: Exception | None = None
        self._task: asyncio.Task | None = None

    @property
    def system(self) -> str:
        return self.step.system

    @property
    def tools(self) -> Sequence[api.RuntimeTool]:
        return self.step.tools

    @property
    def resume_point(self) -> bytes:
        return self.step.resume_point

    async def ready(self) -> None:
        """Waits until the session asks for a step."""
        if not self._open:
            self.step = await self._steps.get()
            self._open = True

    async def ask(self, *, system: str | None = None, messages: Sequence[message_pb2.Message] = (), tools: Sequence[str] = (),
                  resume_point: bytes = b"") -> Answer:
        """Asks the session's model: about the conversation, or about these messages."""
        await self.ready()
        self._answer = asyncio.get_running_loop().create_future()
        ask = api.RuntimeAsk(step=self.step.id, messages=messages, tools=tools, resume_point=resume_point)
        if system is not None:
            ask.system = system
        await self._say(api.AttachRequest(ask=ask))
        got = await self._answer
        return Answer(got.message, got.stop_reason, got.usage)

    async def write(self, text: str, *, thinking: bool = False) -> None:
        """Writes a piece of the agent's message."""
        await self.ready()
        for i in range(0, len(text), _DELTA):
            piece = text[i : i + _DELTA]
            delta = api.RuntimeDelta(step=self.step.id, thinking=piece) if thinking else api.RuntimeDelta(step=self.step.id, text=piece)
            await self._send(api.AttachRequest(delta=delta))

    async def finish(self, calls: Sequence[Call] = (), *, usage: session_pb2.Usage | None = None, resume_point: bytes = b"") -> None:
        """Ends the message that this process writes. Without calls the turn ends."""
        await self.ready()
        made = [api.RuntimeCall(tool=c.tool, arguments_json=json.dumps(c.arguments)) for c in calls]
        await self._say(api.AttachRequest(message=api.RuntimeMessage(step=self.step.id, calls=made, usage=usage, resume_point=resume_point)))

    async def call(self, calls: Sequence[Call], *, resume_point: bytes = b"") -> list[message_pb2.ToolResult]:
        """Makes calls that no model asked for, and returns their results."""
        await self.finish(calls, resume_point=resume_point)
        return await self.results()

    async def results(self) -> list[message_pb2.ToolResult]:
        """Waits for the results of the last message's calls. What a person wrote meanwhile is in `messages`."""
        await self.ready()
        results: list[message_pb2.ToolResult] = []
        for m in reversed(self.messages):
            if m.role == message_pb2.ROLE_ASSISTANT:
                break
            results = [b.tool_result for b in m.blocks if b.WhichOneof("kind") == "tool_result"] + results
        return results

    async def end(self, error: str = "") -> None:
        """Ends the turn without a further message; as FAILED with an error, which people read."""
        await self.ready()
        await self._say(api.AttachRequest(end=api.RuntimeEnd(step=self.step.id, error=error[:1000])))

    async def _say(self, r: api.AttachRequest) -> None:
        self._open = False
        await self._send(r)

    def _leave(self, why: Exception) -> None:
        self._why = why
        if self._task:
            self._task.cancel()


Handler = Callable[[Turn], Awaitable[None]]


class Runtime:
    """A process that is attached as a runtime. `run` attaches it, and again after each break, until `stop`."""

    def __init__(self, target: str, name: str, handler: Handler, *, max_turns: int = 16, key: str = "", label: str = "",
                 credentials: grpc.ChannelCredentials | None = None) -> None:
        self._target, self._credentials, self._handler = target, credentials, handler
        self._open = api.AttachOpen(runtime=name, max_turns=max_turns, label=label or "fairlead_runtime")
        self._metadata = [("authorization", f"Bearer {key}")] if key else []
        self._turns: dict[str, Turn] = {}
        self._call: grpc.aio.StreamStreamCall | None = None
        self._stopping = False
        self._idle = asyncio.Event()

    async def run(self) -> None:
        """Drives turns until `stop`. Raises what trying again does not mend, such as a wrong key."""
        wait = 0.1
        while not self._stopping:
            try:
                await self._attach()
                wait = 0.1
            except grpc.aio.AioRpcError as e:
                if e.code() in _FINAL:
                    raise
                log.warning("not attached: %s: %s", e.code().name, e.details())
                wait = 0.1 if self._call is None else min(2 * wait, 5)
                await asyncio.sleep(wait * (0.5 + random.random()))

    async def stop(self) -> None:
        """Takes no more turns, waits for the ones that it has, and leaves."""
        self._stopping = True
        if self._call:
            await self._send(api.AttachRequest(drain=api.AttachDrain()))
            while self._turns:
                self._idle.clear()
                await self._idle.wait()
            await self._call.done_writing()

    async def _attach(self) -> None:
        if self._credentials:
            channel = grpc.aio.secure_channel(self._target, self._credentials, options=_OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        self._writing = asyncio.Lock()
        async with channel:
            self._call = stubs.RuntimeServiceStub(channel).Attach(metadata=self._metadata)
            beat = None
            try:
                await self._send(api.AttachRequest(open=self._open))
                while (r := await self._call.read()) is not grpc.aio.EOF:
                    if r.WhichOneof("kind") == "opened":
                        beat = asyncio.create_task(self._beat(r.opened.alive_interval.ToTimedelta().total_seconds()))
                    else:
                        self._take(r)
                if (code := await self._call.code()) != grpc.StatusCode.OK:
                    raise grpc.aio.AioRpcError(code, await self._call.initial_metadata(), await self._call.trailing_metadata(), await self._call.details())
            finally:
                self._call = None
                if beat:
                    beat.cancel()
                for turn in self._turns.values():
                    turn._leave(Left("the stream has ended"))
                self._turns.clear()
                self._idle.set()

    async def _send(self, r: api.AttachRequest) -> None:
        if self._call is None:
            raise Left("the stream has ended")
        async with self._writing:  # one write at a time
            await self._call.write(r)

    async def _beat(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            await self._send(api.AttachRequest(alive=api.AttachAlive()))

    def _take(self, r: api.AttachResponse) -> None:
        kind = r.WhichOneof("kind")
        if kind == "conversation":
            turn = self._turns.get(r.conversation.turn)
            if turn is None:
                turn = self._turns[r.conversation.turn] = Turn(r.conversation.turn)
                turn._send = self._send
                turn._task = asyncio.create_task(self._drive(turn))
            del turn.messages[r.conversation.keep :]
            turn.messages.extend(r.conversation.messages)
        elif kind == "step" and r.step.turn in self._turns:
            self._turns[r.step.turn]._steps.put_nowait(r.step)
        elif kind == "model_delta":
            for turn in self._turns.values():
                if turn.step and turn.step.id == r.model_delta.step and turn.on_text and r.model_delta.text:
                    turn.on_text(r.model_delta.text)
        elif kind == "answer":
            for turn in self._turns.values():
                if turn.step and turn.step.id == r.answer.step and turn._answer and not turn._answer.done():
                    turn._answer.set_result(r.answer)
        elif kind == "leave" and (turn := self._turns.pop(r.leave.turn, None)):
            fault = r.leave.fault
            if r.leave.HasField("fault"):
                log.error("%s: %s %s", r.leave.turn, fault.field, fault.message)
            turn._leave(Fault(f"{fault.field}: {fault.message}") if r.leave.HasField("fault") else Left("the turn has ended or goes on elsewhere"))
            self._idle.set()

    async def _drive(self, turn: Turn) -> None:
        """Calls the handler for the turn, each time that a step is there which no earlier call has answered."""
        while True:
            await turn.ready()
            try:
                await self._handler(turn)
                error = ""
            except asyncio.CancelledError:
                raise
            except Exception as e:  # the turn says so; the process goes on
                log.exception("%s: the handler failed", turn.name)
                error = f"The runtime's handler failed: {type(e).__name__}: {e}. See its log, mend it and send the message again."
            if turn._open or error:
                await turn.end(error)
