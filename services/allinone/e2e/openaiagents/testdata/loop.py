"""Drives the agents of a server with OpenAI's official client."""

import os
import openai

client = openai.OpenAI(base_url=os.environ["SERVER"] + "/openai/v1", api_key=os.environ["FAIRLEAD_API_KEY"])
agents = client.beta.agents
sessions = agents.sessions
environment = {"type": "openai_hosted"}
weather = {"type": "function", "name": "weather", "description": "Says the weather.", "parameters": {"type": "object"}}
handlers = {"weather": lambda arguments: f"21 in {arguments['city']}"}


def message(text):
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}]}


session = sessions.create(agent={"model": "scripted:agents", "instructions": "Help.", "tools": [weather]}, environment=environment)
with sessions.stream(session.id, input="tool") as stream:
    result = stream.get_final_result()
print("quickstart:", result.output_text, result.turn.status)
print("items:", [i.type for i in sessions.items.list(session.id, order="asc", limit=2)])
for a in sessions.artifacts.list(session.id):
    print("artifact:", a.path, sessions.artifacts.content(a.id, session_id=session.id).read())
with sessions.stream(session.id, input="client", tool_handlers=handlers) as stream:
    result = stream.get_final_result()
print("handler:", result.output_text)
turns = list(sessions.turns.list(session.id, limit=1))
print("turns:", [t.status for t in turns], [i.type for i in sessions.turns.items.list(turns[0].id, session_id=session.id, order="asc")])

stream = sessions.create(agent={"model": "scripted:agents", "tools": [weather]}, environment=environment, input="client", stream=True, tool_handlers=handlers)
print("streamed create:", stream.get_final_result().output_text)

asking = sessions.create(agent_id="careful", environment=environment)
with sessions.events.stream(asking.id) as events:
    sessions.events.create(asking.id, events=[message("tool")])
    for e in events:
        if e.type == "agent.session.requires_action":
            action = e.session.required_actions[0]
            print("asks:", action.type, action.request.server_label, action.request.name)
            answer = {"type": "agent.session.input.mcp_approval_request_result", "request_id": action.request_id, "response": {"type": "mcp_tool_call", "decision": "deny"}}
            sessions.events.create(asking.id, events=[answer])
        elif e.type == "agent.session.turn.completed":
            break
denied = [i for i in sessions.items.list(asking.id) if i.type == "command_execution"][0]
print("denied:", denied.status, denied.exit_code)

asker = sessions.create(agent_id="asker", environment=environment)
with sessions.stream(asker.id, input="question", tool_handlers={"AskUserQuestion": lambda asked: asked["questions"][0]["options"][1]["label"]}) as stream:
    print("question:", stream.get_final_result().output_text)

with sessions.stream(session.id, input="fail") as stream:
    try:
        stream.get_final_result()
    except Exception as e:
        print("failure:", type(e).__name__, e.turn.status, e.turn.error.code)
updated = sessions.update(session.id, metadata={"Key Ü": "v"})
print("update:", updated.metadata, [s.id for s in sessions.list(metadata={"Key Ü": "v"})] == [session.id])
for call in (lambda: sessions.retrieve("none"), lambda: agents.automations.list(), lambda: client.beta.agents.vaults.list()):
    try:
        call()
    except openai.NotFoundError as e:
        print("not found:", e.status_code, "not served" in e.message)
try:
    sessions.create(agent={"model": "scripted:agents"}, environment={"type": "self_hosted", "workspace_directory": "/w"})
except openai.BadRequestError as e:
    print("refused:", e.param)
