package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// listWait is how long a list waits for a server that is being connected for the first
	// time, or was lost. callWait is how long a call waits for its own server.
	listWait = 5 * time.Second
	callWait = 15 * time.Second
)

// Is reports whether a tool's name is that of a tool of a server.
func Is(name string) bool { return strings.HasPrefix(name, prefix) }

// List returns the tools of a session's servers, by name, and what works of each server. It
// waits a short time for those that are being connected.
func (p *Pool) List(ctx context.Context, c Caller, servers []*commonv1.McpServer, allowed []string) ([]*tool.Tool, []*commonv1.McpServerStatus) {
	offers := p.offers(servers, allowed)
	links := make([]*link, len(offers))
	for i, o := range offers { // all at once, before the wait for the first
		if o.fault == nil {
			links[i], offers[i].fault = p.link(ctx, c, o)
		}
	}
	var tools []*tool.Tool
	states := make([]*commonv1.McpServerStatus, len(offers))
	for i, o := range offers {
		if o.fault != nil {
			states[i] = &commonv1.McpServerStatus{Name: o.GetName(), Required: o.GetRequired(), State: failed, Message: plain(o.fault)}
			continue
		}
		v := links[i].inTime(ctx)
		states[i] = status(o.McpServer, v)
		for _, e := range v.catalog.entries {
			if v.state == connected && o.gives(e) {
				tools = append(tools, p.runnable(c, o, e))
				states[i].Tools = append(states[i].Tools, e.tool.Name)
			}
		}
		links[i].release()
	}
	slices.SortFunc(tools, func(a, b *tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools, states
}

// Find returns the tool of a call. Without one, it returns what the model should know.
func (p *Pool) Find(ctx context.Context, c Caller, servers []*commonv1.McpServer, allowed []string, name string) (*tool.Tool, string) {
	server, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "__")
	offers := p.offers(servers, allowed)
	i := slices.IndexFunc(offers, func(o offer) bool { return o.GetName() == server && o.fault == nil })
	if i < 0 {
		return nil, fmt.Sprintf("There is no MCP server %q for this agent, so there is no tool %q.", cut(server, 100), cut(name, 200))
	}
	o := offers[i]
	l, err := p.link(ctx, c, o)
	if err != nil {
		return nil, away(o.McpServer, plain(err))
	}
	defer l.release()
	waiting, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	v := l.ready(waiting)
	if v.state != connected {
		return nil, away(o.McpServer, v.message())
	}
	if e, ok := v.catalog.find(name); ok && o.gives(e) {
		return p.runnable(c, o, e), ""
	}
	// The server may have said that its list changes, and the list may be on its way.
	l.nudge()
	return nil, fmt.Sprintf("The MCP server %s has no tool %q.%s", o.GetName(), cut(name, 200), have(o, v.catalog))
}

// away is the model's text for a call of a server that cannot be used.
func away(s *commonv1.McpServer, why string) string {
	return fmt.Sprintf("The MCP server %s cannot be used now: %s. The call was not made. Go on without it, or make the call again later.", s.GetName(), why)
}

// have lists a server's tools for the model.
func have(o offer, c catalog) string {
	var names []string
	for _, e := range c.entries {
		if o.gives(e) {
			names = append(names, e.tool.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " It has: " + cut(strings.Join(names, ", "), 4096) + "."
}

func (c catalog) find(name string) (entry, bool) {
	for _, e := range c.entries {
		if e.tool.Name == name {
			return e, true
		}
	}
	return entry{}, false
}

// runnable returns the tool with the way to run it.
func (p *Pool) runnable(c Caller, o offer, e entry) *tool.Tool {
	t := *e.tool
	t.Binding = o.binding(e)
	t.Runner = runner{pool: p, caller: c, server: o, own: e.own, ask: callTool(e.own), repeatable: t.Idempotent}
	return &t
}

// message says what is wrong with a server that cannot be used.
func (v view) message() string {
	if v.fault != "" || v.state != connecting {
		return v.fault
	}
	if waited := time.Since(v.began).Round(time.Second); !v.began.IsZero() && waited >= listWait {
		return fmt.Sprintf("it is being connected, and has not answered for %v", waited)
	}
	return "it is being connected"
}

func status(s *commonv1.McpServer, v view) *commonv1.McpServerStatus {
	st := &commonv1.McpServerStatus{Name: s.GetName(), State: v.state, Required: s.GetRequired(), Message: v.message()}
	if v.state == connected {
		st.Message = v.catalog.summary(v.wants, v.printed)
	}
	if !v.since.IsZero() {
		st.ConnectTime = timestamppb.New(v.since)
	}
	if v.session == nil {
		return st
	}
	st.Resources, st.ResourceTemplates, st.Prompts = v.catalog.resources, v.catalog.templates, v.catalog.prompts
	if init := v.session.InitializeResult(); init != nil {
		st.ProtocolVersion = cut(init.ProtocolVersion, 64)
		st.Instructions = cut(strings.TrimSpace(valid(init.Instructions)), maxInstructions)
		if info := init.ServerInfo; info != nil {
			st.Server = cut(strings.TrimSpace(strings.ToValidUTF8(info.Name+" "+info.Version, "\uFFFD")), 200)
		}
	}
	return st
}
