"""Follows a session with OpenAI's official client while its server is killed and started again."""

import os, sys
import openai

client = openai.OpenAI(base_url=os.environ["SERVER"] + "/openai/v1", api_key="none", max_retries=8)
sessions = client.beta.agents.sessions
session = sessions.create(agent={"model": "scripted:agents"}, environment={"type": "openai_hosted"}).id
ended = False
try:
    with sessions.stream(session, input="slow") as stream:
        told = False
        for e in stream:
            if e.type == "agent.session.turn.output_text.delta" and not told:
                print("streaming", flush=True)
                told = True
    print("the stream ended well")
except Exception as e:
    print("cut off:", isinstance(e, (openai.OpenAIError, OSError)) or type(e).__module__.startswith("httpx"), flush=True)
sys.stdin.readline()  # the server is back
with sessions.events.stream(session) as events:
    for e in events:  # the first one says what the session does
        if e.type == "agent.session.idle":
            break
items = list(sessions.items.list(session, order="asc"))
print(["".join(p.text for p in i.content) for i in items if i.type == "message"])
