"""Drives a server with the official client of A2A for Python. Each line that it prints is a check that held."""

import asyncio
import os
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import AgentInterface, GetTaskRequest, Message, Part, Role, SendMessageRequest, TaskState

server, transport = os.environ["SERVER"], os.environ["TRANSPORT"]


def message(text, **more):
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **more))


async def main():
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, server + "/a2a/coder").get_agent_card()
        assert card.name == "coder", card
        if transport == "GRPC":  # a server that is told its address says so itself
            card.supported_interfaces.append(AgentInterface(url=os.environ["GRPC_AT"], protocol_binding="GRPC", protocol_version="1.0", tenant="coder"))
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[transport], grpc_channel_factory=grpc.aio.insecure_channel)
        client = ClientFactory(config).create(card)
        text, task, state = "", None, None
        async for event in client.send_message(message("hello")):
            if event.HasField("task"):
                task = event.task
            elif event.HasField("artifact_update"):
                text += event.artifact_update.artifact.parts[0].text
            elif event.HasField("status_update"):
                state = event.status_update.status.state
        assert text == "Hello there." and state == TaskState.TASK_STATE_COMPLETED, (text, state)
        print("a plain task", flush=True)
        again = await client.get_task(GetTaskRequest(id=task.id))
        assert again.artifacts[0].parts[0].text == "Hello there.", again
        print("a page that is loaded again", flush=True)
        text = ""
        async for event in client.send_message(message("again", context_id=task.context_id)):
            if event.HasField("artifact_update"):
                text += event.artifact_update.artifact.parts[0].text
        assert text == "And again.", text
        print("a task that follows", flush=True)
        try:
            await client.get_task(GetTaskRequest(id="none"))
        except Exception as e:  # noqa: BLE001
            assert "TaskNotFound" in type(e).__name__, repr(e)
            print("an error", flush=True)


asyncio.run(main())
