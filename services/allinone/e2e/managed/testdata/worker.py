import asyncio
import os
import tempfile

import anthropic

SERVER = os.environ["SERVER"] + "/anthropic"


async def main():
    client = anthropic.AsyncAnthropic(base_url=SERVER, api_key=os.environ["FAIRLEAD_KEY"])
    with tempfile.TemporaryDirectory() as folder:
        worker = client.beta.environments.work.worker(environment_id="ENVIRONMENT_ID", environment_key="ENVIRONMENT_KEY", workdir=folder)
        running = asyncio.create_task(worker.run())
        session = await client.beta.sessions.create(agent="AGENT_ID", environment_id="ENVIRONMENT_ID")
        stream = await client.beta.sessions.events.stream(session_id=session.id)
        message = {"type": "user.message", "content": [{"type": "text", "text": "hosted, please"}]}
        await client.beta.sessions.events.send(session_id=session.id, events=[message])
        names, answered = {}, []
        async for event in stream:
            if event.type == "agent.tool_use":
                names[event.id] = event.name
            elif event.type == "user.tool_result":
                answered.append(names[event.tool_use_id])
            elif event.type == "agent.message":
                text = "".join(block.text for block in event.content)
            elif event.type == "session.status_idle" and event.stop_reason.type != "requires_action":
                break
        print(text)
        print("answered:", answered)
        with open(os.path.join(folder, "number.txt")) as f:
            print("number.txt:", f.read().strip())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


asyncio.run(main())
