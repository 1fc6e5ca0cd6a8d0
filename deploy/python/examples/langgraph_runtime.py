"""Drives turns by a LangGraph graph: python langgraph_runtime.py HOST:PORT [KEY]"""

import asyncio
import signal
import sys

from fairlead.session.v1 import message_pb2
from fairlead_runtime import Answer, Runtime, Turn, calls_of, result_text, text_of
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def of_fairlead(m: message_pb2.Message) -> list[AnyMessage]:
    """The messages of LangChain that a message of Fairlead is."""
    if m.role == message_pb2.ROLE_ASSISTANT:
        calls = [{"name": c.tool, "args": c.arguments, "id": c.id} for c in calls_of(m)]
        return [AIMessage(text_of(m), tool_calls=calls)]
    results = [ToolMessage(result_text(b.tool_result), tool_call_id=b.tool_result.call_id) for b in m.blocks if b.HasField("tool_result")]
    return results + ([HumanMessage(text_of(m))] if text_of(m) else [])


def graph_of(turn: Turn):
    """The graph, whose model and tools are the session's."""

    async def model(state: MessagesState) -> dict:
        answer: Answer = await turn.ask()
        return {"messages": of_fairlead(answer.message)}

    async def tools(state: MessagesState) -> dict:
        results = await turn.results()
        return {"messages": [ToolMessage(result_text(r), tool_call_id=r.call_id) for r in results]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    return graph.compile()


async def handle(turn: Turn) -> None:
    """Runs the graph on the conversation so far, wherever another process has left it."""
    await graph_of(turn).ainvoke({"messages": [m for f in turn.messages for m in of_fairlead(f)]}, {"recursion_limit": 1000})


async def main() -> None:
    runtime = Runtime(sys.argv[1], "graph", handle, key=sys.argv[2] if len(sys.argv) > 2 else "", label="LangGraph")
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: asyncio.ensure_future(runtime.stop()))
    await runtime.run()


if __name__ == "__main__":
    asyncio.run(main())
