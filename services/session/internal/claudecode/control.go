package claudecode

import (
	"encoding/json"
)

// serverName is the name under which the CLI knows the session's tools.
const serverName = "fl"

// toolPrefix begins the names of the session's tools in the CLI.
const toolPrefix = "mcp__" + serverName + "__"

// result is what the CLI is told of a tool call.
type result struct {
	Content []block `json:"content"`
	IsError bool    `json:"isError,omitempty"`
}

// handshake returns the first message to the CLI: it offers the tools. A version that does not know a member ignores it.
// Without systemPromptSnapshot the newer ones would resume a conversation with its first prompt.
func handshake(tools []offered) any {
	return map[string]any{"type": "control_request", "request_id": "handshake", "request": map[string]any{
		"subtype": "initialize", "systemPromptSnapshot": false, "sdkMcpServers": []string{serverName},
		"sdkMcpServerManifests": map[string]any{serverName: map[string]any{
			"initializeResult": greeting(), "toolsListResult": map[string]any{"tools": tools},
		}},
	}}
}

func greeting() any {
	return map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo": map[string]any{"name": serverName, "version": "1"},
	}
}

// offered is a tool as MCP lists it.
type offered struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations hints           `json:"annotations"`
}

// hints let the CLI ask for all calls of an answer at once. The session decides which run together.
type hints struct {
	ReadOnly bool `json:"readOnlyHint"`
}

// asked is a request of the CLI.
type asked struct {
	Subtype  string          `json:"subtype"`
	ToolName string          `json:"tool_name"`
	Message  json.RawMessage `json:"message"`
}

// rpc is a message to the server of the session's tools.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			ToolUse string `json:"claudecode/toolUseId"`
		} `json:"_meta"`
	} `json:"params"`
}

// answer answers a request of the CLI. Only a tool call takes time.
func (p *process) answer(m printed) {
	var r asked
	if json.Unmarshal(m.Request, &r) != nil {
		p.refuse(m.RequestID, "the request is not of a known form")
		return
	}
	switch r.Subtype {
	case "mcp_message":
		p.tool(m.RequestID, r.Message)
	case "can_use_tool":
		// The CLI does not ask about the session's tools. Others do not exist.
		p.respond(m.RequestID, map[string]any{"behavior": "deny", "message": "The tool " + r.ToolName + " does not exist here."})
	case "hook_callback":
		p.respond(m.RequestID, map[string]any{})
	default:
		p.refuse(m.RequestID, "unsupported request "+r.Subtype)
	}
}

// tool answers a message to the server of the session's tools.
func (p *process) tool(id string, message json.RawMessage) {
	var r rpc
	if json.Unmarshal(message, &r) != nil {
		p.refuse(id, "the message is not JSON-RPC")
		return
	}
	reply := func(result any) {
		rpcID := r.ID
		if len(rpcID) == 0 {
			rpcID = json.RawMessage("null")
		}
		p.respond(id, map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": rpcID, "result": result}})
	}
	switch r.Method {
	case "tools/call":
		comes := p.resultOf(r.Params.Meta.ToolUse)
		if comes == nil || p.waits.Add(1) > maxCalls {
			p.refuse(id, "too many calls")
			return
		}
		p.work.Go(func() {
			defer p.waits.Add(-1)
			select {
			case result := <-comes:
				reply(result)
			case <-p.over:
			}
		})
	case "initialize":
		reply(greeting())
	case "tools/list": // of a version that does not take the list from the handshake
		reply(map[string]any{"tools": p.tools})
	default: // notifications, and what the handshake has told already
		reply(map[string]any{})
	}
}

// resultOf returns where the result of a call comes, once; nil: too many calls wait.
func (p *process) resultOf(toolUse string) chan result {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.results[toolUse]
	if c == nil {
		if len(p.results) >= maxCalls {
			return nil
		}
		c = make(chan result, 1)
		p.results[toolUse] = c
	}
	return c
}

// forget drops the calls of the last answer, which have their results.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.results)
}

func (p *process) respond(id string, response any) {
	_ = p.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": id, "response": response}}) // read finds the end of the connection
}

func (p *process) refuse(id, why string) {
	_ = p.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": id, "error": why}}) // as above
}
