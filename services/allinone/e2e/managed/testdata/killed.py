"""Follows a session with Anthropic's official client while its server is killed and started again."""

import os, sys
import anthropic

client = anthropic.Anthropic(base_url=os.environ["SERVER"] + "/anthropic", api_key="none", max_retries=8)
beta = client.beta
agent = beta.agents.create(name="Helper", model="scripted:agents", tools=[{"type": "agent_toolset_20260401"}])
environment = beta.environments.create(name="e")
session = beta.sessions.create(agent=agent.id, environment_id=environment.id).id
known = {}


def follow(stream, seen):
    for e in stream:
        if e.type == "event_delta" and not seen:
            print("streaming", flush=True)
            seen = True
        if getattr(e, "id", None):
            known[e.id] = e
        if e.type == "session.status_idle":
            return


try:
    with beta.sessions.events.stream(session_id=session, event_deltas=["agent.message"]) as stream:
        message = {"type": "user.message", "content": [{"type": "text", "text": "slow"}]}
        beta.sessions.events.send(session_id=session, events=[message])
        follow(stream, False)
    print("the stream ended well")
except Exception as e:
    print("cut off:", isinstance(e, (anthropic.APIError, OSError)) or type(e).__module__.startswith("httpx"), flush=True)
sys.stdin.readline()  # the server is back
with beta.sessions.events.stream(session_id=session) as stream:
    for e in beta.sessions.events.list(session):
        known[e.id] = e
    if not any(e.type == "session.status_idle" for e in known.values()):
        follow(stream, True)
print(["".join(b.text for b in e.content) for e in known.values() if e.type in ("user.message", "agent.message")])
