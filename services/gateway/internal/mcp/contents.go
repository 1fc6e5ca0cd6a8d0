package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// The built-in tools with which a session reads what its MCP servers have besides tools. An agent that has one gives it
// to clients here, too.
const (
	resourceTool = "ReadMcpResource"
	promptTool   = "GetMcpPrompt"
)

// part is a resource, a template of resources or a prompt of a connected server.
type part struct {
	sum    [sha256.Size]byte
	server string
	own    string // the server's name of it, if it is a prompt
	remove func()
}

// replaceContents makes the resources and prompts of the connected servers those of the server, as far as the session
// has a tool that reads them. Of two with one address, that of the first server counts.
func (sc *scope) replaceContents(ctx context.Context, tools []*toolsv1.Tool) error {
	has := func(name string) bool {
		return slices.ContainsFunc(tools, func(t *toolsv1.Tool) bool { return toolName(t) == name })
	}
	left := map[string]bool{}
	for key := range sc.parts {
		left[key] = true
	}
	if has(resourceTool) || has(promptTool) {
		resp, err := sc.s.servers.GetMcpStatus(ctx, &sessionv1.GetMcpStatusRequest{Name: sc.session + "/mcp"})
		if err != nil {
			return err
		}
		for _, server := range resp.GetStatus().GetServers() {
			if has(resourceTool) {
				sc.resources(server, left)
			}
			if has(promptTool) {
				sc.prompts(server, left)
			}
		}
	}
	for key := range left {
		sc.parts[key].remove()
		delete(sc.parts, key)
	}
	return nil
}

func (sc *scope) resources(server *commonv1.McpServerStatus, left map[string]bool) {
	read := sc.read(server.GetName())
	for _, r := range server.GetResources() {
		made := &sdk.Resource{
			URI: r.GetUri(), Name: r.GetName(), Title: r.GetTitle(), Description: r.GetDescription(), MIMEType: r.GetMediaType(), Size: r.GetSize(),
		}
		sc.part("resource "+r.GetUri(), server.GetName(), r, left,
			func() { sc.server.AddResource(made, read) }, func() { sc.server.RemoveResources(made.URI) })
	}
	for _, r := range server.GetResourceTemplates() {
		made := &sdk.ResourceTemplate{
			URITemplate: r.GetUriTemplate(), Name: r.GetName(), Title: r.GetTitle(), Description: r.GetDescription(), MIMEType: r.GetMediaType(),
		}
		sc.part("template "+r.GetUriTemplate(), server.GetName(), r, left,
			func() { sc.server.AddResourceTemplate(made, read) }, func() { sc.server.RemoveResourceTemplates(made.URITemplate) })
	}
}

func (sc *scope) prompts(server *commonv1.McpServerStatus, left map[string]bool) {
	for _, p := range server.GetPrompts() {
		made := &sdk.Prompt{Name: "mcp__" + server.GetName() + "__" + p.GetName(), Title: p.GetTitle(), Description: p.GetDescription()}
		for _, a := range p.GetArguments() {
			made.Arguments = append(made.Arguments, &sdk.PromptArgument{Name: a.GetName(), Description: a.GetDescription(), Required: a.GetRequired()})
		}
		get := sc.prompt(server.GetName(), p.GetName())
		sc.part("prompt "+made.Name, server.GetName(), p, left,
			func() { sc.server.AddPrompt(made, get) }, func() { sc.server.RemovePrompts(made.Name) })
	}
}

// part keeps one, and adds it if it is new or has changed. The SDK panics about one that it cannot serve.
func (sc *scope) part(key, server string, of interface {
	proto.Message
	GetName() string
}, left map[string]bool, add, remove func()) {
	if _, known := sc.parts[key]; known && !left[key] {
		return // another server has it, too
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(of)
	sum := sha256.Sum256(append(b, server...))
	if err == nil && sc.parts[key].sum == sum {
		delete(left, key)
		return
	}
	defer func() {
		if r := recover(); r != nil {
			sc.s.log.Warn("a resource or prompt of an MCP server is not served over MCP", "session", sc.session, "server", server, "key", key, "error", r)
		}
	}()
	add()
	delete(left, key)
	sc.parts[key] = part{sum: sum, server: server, own: of.GetName(), remove: remove}
}

// read returns the handler of the resources of a server.
func (sc *scope) read(server string) sdk.ResourceHandler {
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		result, _, err := sc.through(ctx, resourceTool, map[string]any{"server": server, "uri": req.Params.URI}, &sdk.CallToolRequest{
			Session: req.Session, Extra: req.Extra,
			Params: &sdk.CallToolParamsRaw{Meta: req.Params.Meta, InputResponses: req.Params.InputResponses, RequestState: req.Params.RequestState},
		})
		if err != nil {
			return nil, err
		}
		out := &sdk.ReadResourceResult{InputRequests: result.InputRequests, RequestState: result.RequestState}
		for _, c := range result.Content {
			switch c := c.(type) {
			case *sdk.EmbeddedResource:
				out.Contents = append(out.Contents, c.Resource)
			case *sdk.TextContent: // a note about what was left out
				out.Contents = append(out.Contents, &sdk.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: c.Text})
			}
		}
		return out, nil
	}
}

// prompt returns the handler of a prompt of a server.
func (sc *scope) prompt(server, name string) sdk.PromptHandler {
	return func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		arguments := map[string]any{"server": server, "name": name}
		if len(req.Params.Arguments) > 0 {
			arguments["arguments"] = req.Params.Arguments
		}
		result, structured, err := sc.through(ctx, promptTool, arguments, &sdk.CallToolRequest{
			Session: req.Session, Extra: req.Extra,
			Params: &sdk.CallToolParamsRaw{Meta: req.Params.Meta, InputResponses: req.Params.InputResponses, RequestState: req.Params.RequestState},
		})
		if err != nil {
			return nil, err
		}
		out := &sdk.GetPromptResult{InputRequests: result.InputRequests, RequestState: result.RequestState}
		if len(out.InputRequests) > 0 {
			return out, nil
		}
		return out, messages(structured, out)
	}
}

// messages decodes what the tool gives to programs.
func messages(structured json.RawMessage, out *sdk.GetPromptResult) error {
	var said struct {
		Description string
		Messages    []struct {
			Role    sdk.Role
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(structured, &said); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The prompt is too long to be read."}
	}
	out.Description = said.Description
	for _, m := range said.Messages {
		c := &commonv1.Content{}
		if err := protojson.Unmarshal(m.Content, c); err != nil {
			return fmt.Errorf("decode a prompt: %w", err)
		}
		out.Messages = append(out.Messages, &sdk.PromptMessage{Role: m.Role, Content: contentOf(c)})
	}
	return nil
}

// through makes a call of a built-in tool for a request that is not one, so that what holds for calls holds for it.
func (sc *scope) through(ctx context.Context, tool string, arguments map[string]any, req *sdk.CallToolRequest) (*sdk.CallToolResult, json.RawMessage, error) {
	b, err := json.Marshal(arguments)
	if err != nil {
		return nil, nil, err
	}
	req.Params.Name, req.Params.Arguments = tool, b
	result, err := sc.call(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if result.IsError {
		var why []string
		for _, c := range result.Content {
			if t, ok := c.(*sdk.TextContent); ok {
				why = append(why, t.Text)
			}
		}
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: strings.Join(why, " ")}
	}
	structured, _ := result.StructuredContent.(json.RawMessage)
	return result, structured, nil
}
