"""Drives the package fairlead, as it was installed from its wheel: python client.py sync|async sse|grpc. The test kills the server at KILL."""

import asyncio
import inspect
import os
import sys
from contextlib import aclosing

import fairlead
from fairlead import AsyncFairlead, Fairlead
from fairlead.common.v1 import question_pb2
from fairlead.session.v1 import session_service_pb2 as api, turn_pb2

kind, wire = sys.argv[1:]
grpc = wire == "grpc"


class Awaited:
    """A client that waits, for a program with an event loop."""

    def __init__(self, *args, **kwargs):
        self.client = Fairlead(*args, **kwargs)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        if inspect.isgeneratorfunction(method):
            async def generate(*args, **kwargs):
                for x in method(*args, **kwargs):
                    yield x
            return generate

        async def call(*args, **kwargs):
            return method(*args, **kwargs)
        return call

    async def __aenter__(self):
        self.client.__enter__()
        return self

    async def __aexit__(self, *args):
        self.client.__exit__(*args)


def connect(guarded=False, **kwargs):
    make = AsyncFairlead if kind == "async" else Awaited
    target = os.environ["GUARDED_GRPC" if guarded else "FAIRLEAD_TARGET"]
    base = os.environ["GUARDED" if guarded else "FAIRLEAD_BASE_URL"]
    return make(target=target, **kwargs) if grpc else make(base, **kwargs)


def killed():
    print("KILL", flush=True)
    sys.stdin.readline()


async def nothing(event):
    pass


async def turn(client, session, text, act=nothing, **fields):
    async for e in client.run(session, text, **fields):
        await act(e)
    return f"{turn_pb2.TurnState.Name(e.data.state)} {e.data.final_text}".strip()


async def fault(awaitable):
    try:
        await awaitable
    except fairlead.FairleadError as e:
        return e
    return fairlead.FairleadError("no error")


async def read(client, session):
    async for _ in client.follow(session):
        pass


async def main(client):
    session = (await client.create_session("helper", title="A title", labels={"team": "x"})).name
    print("plain:", await turn(client, session, "plain"), (await client.get_session(session)).title)

    coder = await client.create_session("coder")
    asked = []

    async def allow(e):
        if e.type == "approval.requested":
            asked.append(e.data)
            await client.approve(coder, e.data)

    async def refuse(e):
        if e.type == "turn.waiting":
            await client.deny(coder, (await client.list_approvals(session=coder.name))[0], "Not now.")

    print("approved:", await turn(client, coder, "hello", allow))
    late = await fault(client.deny(coder, asked[0]))
    print("refused too late:", type(late).__name__, late.code, late.reason)
    print("denied:", await turn(client, coder, "hello", refuse))

    calls = []

    async def where(e):
        if e.type == "tool_call.arguments":
            calls.append(e.data)
        if e.type == "turn.waiting":
            await client.submit_tool_result(session, calls[-1].call_id, f"Berlin {calls[-1].arguments_json}")

    tool = api.ClientTool(name="where", description="Where the person is", input_schema_json='{"type":"object"}')
    print("a tool of the client:", await turn(client, session, "where", where, client_tools=[tool]))

    async def answer(e):
        if e.type == "question.requested":
            await client.answer_question(session, call_id=e.data.call_id, question_id=e.data.question.id,
                                         action=question_pb2.QUESTION_ACTION_ACCEPT, content_json='{"answers":{"Which?":"B"}}')

    print("a question:", (await turn(client, session, "question", answer)).splitlines()[-1])

    async def stop(e):
        if e.type == "text.delta":
            await client.interrupt(session)

    print("interrupted:", (await turn(client, session, "long", stop)).split()[0])
    print("failed:", (await turn(client, session, "fail")).split()[0])

    slow = await client.create_session("helper")
    begun = await client.create_turn(slow, "slow")
    last = gaps = kills = 0
    breaks, whole = [], []
    async for e in client.follow(slow, until=begun.name, on_break=lambda error, attempt: breaks.append(error)):
        gaps += e.first_seq != last + 1
        last = e.seq
        whole.append(e)
        if not kills and e.type == "text.delta" and "three" in e.data.text:
            kills += 1
            killed()
    print("killed:", whole[-1].data.final_text, "gaps", gaps, "kills", kills, "breaks", len(breaks) > 0)
    half = whole[len(whole) // 2].seq
    rest = [e async for e in client.follow(slow, until=begun.name, after_seq=half)]
    print("resumed:", [e.seq for e in rest] == [e.seq for e in whole if e.seq > half])
    async with aclosing(client.follow(slow)) as events:
        async for e in events:
            break
    print("left:", e.seq)

    bad = await fault(client.create_session("No Such"))
    print("bad input:", type(bad).__name__, bad.code, bad.reason, bad.fields[0].field)
    print("bad turn:", (await fault(client.create_turn(session, " "))).fields[0].field)
    none = await fault(read(client, "sessions/none"))
    print("no session:", type(none).__name__, none.reason)
    print("sessions:", len([s async for s in client.list_sessions(page_size=1)]))
    await client.delete_session(session)
    print("deleted:", (await fault(client.get_session(session))).reason)


async def keys():
    async with connect(guarded=True, api_key="fl_wrong") as client:
        wrong = await fault(client.create_session())
        print("wrong key:", type(wrong).__name__, wrong.code, wrong.hint)
        print("wrong key, following:", type(await fault(read(client, "sessions/s1"))).__name__)
    async with connect(guarded=True, api_key=os.environ["GUARDED_KEY"]) as client:
        print("right key:", (await client.create_session()).user)
    nowhere = AsyncFairlead(target="127.0.0.1:1", max_retries=0) if grpc else AsyncFairlead("http://127.0.0.1:1", max_retries=0)
    async with nowhere as client:
        print("no server:", type(await fault(client.get_session("sessions/s1"))).__name__)


async def all_of_it():
    async with connect(max_retries=60) as client:
        await main(client)
    await keys()


asyncio.run(all_of_it())
