# An MCP server on standard input and output, as of 2025-06-18.
import json, sys, time

def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

schema = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}

for line in sys.stdin:
    q = json.loads(line)
    method, id = q.get("method"), q.get("id")
    if id is None:
        continue
    if method == "initialize":
        answer(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "local", "version": "1"}})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": "note", "description": "notes a line", "inputSchema": schema}]})
    elif method == "tools/call":
        noted = q["params"]["arguments"]["line"]
        with open("/workspace/effects", "a") as effects:
            effects.write(noted + "\n")
        time.sleep(0.1)
        answer(id, {"content": [{"type": "text", "text": "noted " + noted}]})
    elif method == "ping":
        answer(id, {})
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}), flush=True)
