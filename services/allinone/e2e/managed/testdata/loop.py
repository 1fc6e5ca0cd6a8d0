"""Drives the agents of a server with Anthropic's official client."""

import io, os
import anthropic

client = anthropic.Anthropic(base_url=os.environ["SERVER"] + "/anthropic", api_key=os.environ["FAIRLEAD_API_KEY"])
beta = client.beta
TOOLS = [{"type": "agent_toolset_20260401"}]
WEATHER = {"type": "custom", "name": "weather", "description": "Says the weather.", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def begin(tools, **more):
    agent = beta.agents.create(name="Helper", model="scripted:agents", system="Help.", tools=tools)
    environment = beta.environments.create(name="e", config={"type": "cloud", "networking": {"type": "unrestricted"}})
    return beta.sessions.create(agent=agent.id, environment_id=environment.id, title="Try", **more).id


def send(session, *events):
    return beta.sessions.events.send(session_id=session, events=list(events))


def say(text):
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def run(session, *events, act=None, **options):
    """Sends events, and returns what happens until the session is idle and needs nothing."""
    seen, text = [], ""
    with beta.sessions.events.stream(session_id=session, **options) as stream:
        send(session, *events)
        for e in stream:
            seen.append(e)
            if e.type == "agent.message":
                text = "".join(b.text for b in e.content)
            if e.type == "session.status_idle":
                if e.stop_reason.type != "requires_action":
                    return seen, text, e.stop_reason.type
                for id in e.stop_reason.event_ids:
                    send(session, act(next(x for x in seen if getattr(x, "id", "") == id)))


session = begin(TOOLS)
seen, text, why = run(session, say("tool"))
print("quickstart:", text, why, [e.name for e in seen if e.type == "agent.tool_use"], beta.sessions.retrieve(session).status)
_, text, why = run(session, say("and then?"))
print("follow-up:", text, why)
_, text, why = run(session, say("fail"))
print("failure:", why)

pages = [e.id for e in beta.sessions.events.list(session, limit=3)]
print("paging:", pages == [e.id for e in beta.sessions.events.list(session)], len(pages) == len(set(pages)))
files = list(beta.files.list(scope_id=session)) if hasattr(beta.files, "list") else list(client.files.list(scope_id=session))
print("outputs:", [f.filename for f in files], client.files.download(files[0].id).read())

asking = begin([{"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}])
_, text, _ = run(asking, say("tool"), act=lambda e: {"type": "user.tool_confirmation", "tool_use_id": e.id, "result": "allow"})
print("allowed:", text)
_, text, _ = run(asking, say("tool"), act=lambda e: {"type": "user.tool_confirmation", "tool_use_id": e.id, "result": "deny", "deny_message": "not now"})
print("denied:", "not now" in text)

own = begin([WEATHER])
_, text, _ = run(own, say("client"), act=lambda e: {"type": "user.custom_tool_result", "custom_tool_use_id": e.id, "content": [{"type": "text", "text": f"21 in {e.input['city']}"}]})
print("custom tool:", text)

def answered(e):
    label = e.input["questions"][0]["options"][1]["label"]
    return {"type": "user.custom_tool_result", "custom_tool_use_id": e.id, "content": [{"type": "text", "text": label}]}


asker = beta.sessions.create(agent="asker", environment_id=beta.environments.create(name="e").id).id
_, text, _ = run(asker, say("question"), act=answered)
print("question:", text)

busy = begin(TOOLS)
deltas, text = [], ""
with beta.sessions.events.stream(session_id=busy, event_deltas=["agent.message"]) as stream:
    send(busy, say("long"))
    for e in stream:
        if e.type == "event_delta":
            deltas.append(e.delta.content.text)
            if len(deltas) == 3:
                send(busy, {"type": "user.interrupt"}, say("stop?"))
        if e.type == "agent.message":
            text = "".join(b.text for b in e.content)
        if e.type == "session.status_idle":
            break
print("interrupt:", deltas[0], text)

# A client that is cut off opens the stream, lists all events, and drops those that it has.
cut, known, text = begin(TOOLS), {}, ""
with beta.sessions.events.stream(session_id=cut) as stream:
    send(cut, say("slow"))
    for e in stream:
        known[e.id] = e
        if e.type == "span.model_request_start":
            break
with beta.sessions.events.stream(session_id=cut) as stream:
    for e in beta.sessions.events.list(cut):
        known[e.id] = e
    for e in stream:
        if e.id not in known or e.processed_at:
            known[e.id] = e
        if e.type == "session.status_idle":
            break
print("reconnect:", ["".join(b.text for b in e.content) for e in known.values() if e.type == "agent.message"])

note = client.files.upload(file=("note.txt", io.BytesIO(b"remember the milk"), "text/plain"))
reader = begin(TOOLS, resources=[{"type": "file", "file_id": note.id, "mount_path": "/mnt/session/uploads/note.txt"}])
_, text, _ = run(reader, say("read"))
print("file:", text, client.files.retrieve_metadata(note.id).size_bytes if hasattr(client.files, "retrieve_metadata") else "")

try:
    beta.sessions.create(agent="agent_none", environment_id="env_x")
except anthropic.NotFoundError as e:
    print("not found:", e.status_code)
try:
    beta.vaults.create(display_name="v")
except anthropic.APIStatusError as e:
    print("vaults:", e.status_code)
agent = beta.agents.create(name="V", model="scripted:agents", metadata={"Key Ü": "v"})
agent = beta.agents.update(agent.id, version=agent.version, description="d")
print("versions:", [a.version for a in beta.agents.versions.list(agent.id)], agent.metadata, beta.agents.archive(agent.id).archived_at is not None)
beta.sessions.archive(own)
print("archived:", beta.sessions.retrieve(own).status, len(list(beta.sessions.list(limit=2))), beta.sessions.delete(own).type)
