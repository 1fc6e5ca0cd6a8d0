# An MCP server on standard input and output, as of 2025-06-18.
import json, sys

def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

for line in sys.stdin:
    q = json.loads(line)
    method, id = q.get("method"), q.get("id")
    if id is None:
        continue
    if method == "initialize":
        answer(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "local", "version": "1"}})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("quit", "shout")]})
    elif method == "tools/call" and q["params"]["name"] == "quit":
        sys.exit(7)
    elif method == "tools/call":
        answer(id, {"content": [{"type": "text", "text": q["params"]["arguments"]["text"].upper()}]})
    elif method == "ping":
        answer(id, {})
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}), flush=True)
