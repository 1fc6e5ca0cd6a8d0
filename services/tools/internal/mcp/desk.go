package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// The built-in tools that read what servers have besides tools.
const (
	ResourceTool = "ReadMcpResource"
	PromptTool   = "GetMcpPrompt"
)

// desk runs the built-in tools that show what the servers of a session have besides tools. Pool.For gives it the
// session's servers.
type desk struct {
	pool   *Pool
	caller Caller
	offers []offer
	do     func(ctx context.Context, d desk, c tool.Call, out tool.Sink) (*tool.Result, error)
}

// Run implements tool.Runner.
func (d desk) Run(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error) {
	return d.do(ctx, d, c, out)
}

// For returns a built-in tool as it runs for the servers of a session.
func (p *Pool) For(t *tool.Tool, c Caller, servers []*commonv1.McpServer, allowed []string) *tool.Tool {
	d, ok := t.Runner.(desk)
	if !ok {
		return t
	}
	bound := *t
	bound.Runner = desk{pool: p, caller: c, offers: p.offers(servers, allowed), do: d.do}
	return &bound
}

// Tools returns the built-in tools. A server may do anything when it is asked, so they do not count as reading only.
func Tools() ([]*tool.Tool, error) {
	var all []*tool.Tool
	for _, one := range []struct {
		spec tool.Spec
		desk
	}{
		{tool.Spec{
			Name:        "ListMcpResources",
			Description: "Lists the resources of the connected MCP servers: files, records and the like, each with its server and its address (uri). Read one with ReadMcpResource. An address with {parts} is a template: fill them in.",
			InputSchema: `{"type":"object","properties":{"server":{"type":"string","description":"Only this server's"}},"additionalProperties":false}`,
			Parallel:    true,
		}, desk{do: listResources}},
		{tool.Spec{
			Name:        ResourceTool,
			Description: "Reads a resource of a connected MCP server. ListMcpResources lists them.",
			InputSchema: `{"type":"object","properties":{"server":{"type":"string","description":"The server's name"},"uri":{"type":"string","minLength":1,"maxLength":8192,"description":"The address of the resource"}},"required":["server","uri"],"additionalProperties":false}`,
			Parallel:    true,
		}, desk{do: readResource}},
		{tool.Spec{
			Name:        PromptTool,
			Description: "Gets a prompt of a connected MCP server: the text that the server has for a purpose, with the given arguments.",
			InputSchema: `{"type":"object","properties":{"server":{"type":"string","description":"The server's name"},"name":{"type":"string","minLength":1,"maxLength":1000,"description":"The server's name of the prompt"},"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"What the prompt takes"}},"required":["server","name"],"additionalProperties":false}`,
			Parallel:    true,
		}, desk{do: getPrompt}},
	} {
		one.spec.Provider = tool.Builtin
		made, err := tool.New(one.spec, one.desk)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

// params are the arguments of all of them.
type params struct {
	Server, URI, Name string
	Arguments         map[string]string
}

func paramsOf(arguments json.RawMessage) (p params, err error) {
	if err = json.Unmarshal(arguments, &p); err != nil {
		err = fmt.Errorf("decode the arguments of a checked call: %w", err)
	}
	return p, err
}

// request runs a request to the server that the arguments name.
func (d desk) request(ctx context.Context, c tool.Call, out tool.Sink, ask request) (*tool.Result, error) {
	p, err := paramsOf(c.Arguments)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range d.offers {
		if o.GetName() == p.Server && o.fault == nil {
			return runner{pool: d.pool, caller: d.caller, server: o, ask: ask, repeatable: true}.Run(ctx, c, out)
		}
		names = append(names, o.GetName())
	}
	return tool.Failed(fmt.Sprintf("There is no MCP server %q for this agent. It has: %s.", cut(p.Server, 100), cut(strings.Join(names, ", "), 1000))), nil
}

// listResources lists from what the connections know already.
func listResources(ctx context.Context, d desk, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	p, err := paramsOf(c.Arguments)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, o := range d.offers {
		if p.Server != "" && p.Server != o.GetName() {
			continue
		}
		lines = append(lines, d.list(ctx, o)...)
	}
	if len(lines) == 0 {
		return tool.OK("The connected MCP servers have no resources."), nil
	}
	return tool.OK(strings.Join(lines, "\n")), nil
}

// list returns a server's resources and templates, each as a line of JSON; or why there are none.
func (d desk) list(ctx context.Context, o offer) (lines []string) {
	if o.fault != nil {
		return []string{away(o.McpServer, plain(o.fault))}
	}
	l, err := d.pool.link(ctx, d.caller, o)
	if err != nil {
		return []string{away(o.McpServer, plain(err))}
	}
	defer l.release()
	v := l.inTime(ctx)
	if v.state != connected {
		return []string{away(o.McpServer, v.message())}
	}
	add := func(of map[string]any, further ...string) {
		for i := 0; i < len(further); i += 2 {
			if further[i+1] != "" {
				of[further[i]] = further[i+1]
			}
		}
		of["server"] = o.GetName()
		lines = append(lines, string(marshal(of)))
	}
	for _, r := range v.catalog.resources {
		add(map[string]any{"uri": r.GetUri()}, "name", r.GetName(), "title", r.GetTitle(), "description", r.GetDescription(), "mimeType", r.GetMediaType())
	}
	for _, r := range v.catalog.templates {
		add(map[string]any{"uriTemplate": r.GetUriTemplate()}, "name", r.GetName(), "title", r.GetTitle(), "description", r.GetDescription(), "mimeType", r.GetMediaType())
	}
	return lines
}

func readResource(ctx context.Context, d desk, c tool.Call, out tool.Sink) (*tool.Result, error) {
	return d.request(ctx, c, out, func(ctx context.Context, s *mcp.ClientSession, meta mcp.Meta, arguments json.RawMessage, d *dialog) (*reply, error) {
		p, err := paramsOf(arguments)
		if err != nil {
			return nil, err
		}
		answer, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: p.URI, Meta: meta, InputResponses: d.responses(), RequestState: d.State})
		switch {
		case err != nil:
			return nil, err
		case answer.NeedsInput():
			return &reply{asked: answer.InputRequests, state: answer.RequestState}, nil
		}
		b := builder{room: maxText}
		for i, r := range answer.Contents {
			if i == maxBlocks {
				b.note("%d more parts of the resource were left out", len(answer.Contents)-i)
				break
			}
			b.resource(r)
		}
		b.close()
		return &reply{result: &tool.Result{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: b.content}}, nil
	})
}

// getPrompt gives the model the texts, and programs the messages as JSON: objects with role and content, which has the
// form of this API.
func getPrompt(ctx context.Context, d desk, c tool.Call, out tool.Sink) (*tool.Result, error) {
	return d.request(ctx, c, out, func(ctx context.Context, s *mcp.ClientSession, meta mcp.Meta, arguments json.RawMessage, d *dialog) (*reply, error) {
		p, err := paramsOf(arguments)
		if err != nil {
			return nil, err
		}
		answer, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name, Arguments: p.Arguments, Meta: meta, InputResponses: d.responses(), RequestState: d.State})
		switch {
		case err != nil:
			return nil, err
		case answer.NeedsInput():
			return &reply{asked: answer.InputRequests, state: answer.RequestState}, nil
		}
		result, err := promptResult(answer)
		return &reply{result: result}, err
	})
}

func promptResult(answer *mcp.GetPromptResult) (*tool.Result, error) {
	b := builder{room: maxText}
	var roles []string
	for i, m := range answer.Messages {
		if i == maxBlocks {
			b.note("%d more messages of the prompt were left out", len(answer.Messages)-i)
			break
		}
		b.add(m.Content)
		for len(roles) < len(b.content) {
			roles = append(roles, string(m.Role))
		}
	}
	messages := make([]map[string]any, len(roles))
	for i, role := range roles {
		content, err := protojson.Marshal(b.content[i])
		if err != nil {
			return nil, fmt.Errorf("encode a prompt: %w", err)
		}
		messages[i] = map[string]any{"role": role, "content": json.RawMessage(content)}
	}
	b.close()
	text := marshal(map[string]any{"description": cut(valid(answer.Description), maxDescription), "messages": messages})
	result := &tool.Result{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: b.content}
	if len(text) <= maxStructured {
		result.StructuredJson = string(text)
	}
	return result, nil
}
