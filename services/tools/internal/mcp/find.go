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
	// listWait is how long a list waits for servers, and callWait a call for its own.
	listWait = 5 * time.Second
	callWait = 15 * time.Second
)

// Is reports whether a tool's name is that of a tool of a server.
func Is(name string) bool { return strings.HasPrefix(name, prefix) }

// List returns the tools of servers, by name, and what works of each server. It waits a
// short time for those that are being connected.
func (p *Pool) List(ctx context.Context, c Caller, servers []*commonv1.McpServer) ([]*tool.Tool, []*commonv1.McpServerStatus) {
	waiting, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	links, faults := make([]*link, len(servers)), make([]error, len(servers))
	for i, s := range servers { // all at once, before the wait for the first
		if faults[i] = named(servers[:i], s); faults[i] == nil {
			links[i], faults[i] = p.link(ctx, c, s)
		}
	}
	var tools []*tool.Tool
	states := make([]*commonv1.McpServerStatus, len(servers))
	for i, s := range servers {
		if faults[i] != nil {
			states[i] = &commonv1.McpServerStatus{Name: s.GetName(), Required: s.GetRequired(), State: failed, Message: plain(faults[i])}
			continue
		}
		v := links[i].settled(waiting)
		states[i] = status(s, v)
		for _, e := range v.catalog.entries {
			if v.state == connected && offered(s, e.own) {
				tools = append(tools, p.runnable(c, s, e))
				states[i].Tools = append(states[i].Tools, e.tool.Name)
			}
		}
		links[i].release()
	}
	slices.SortFunc(tools, func(a, b *tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools, states
}

// named refuses a server with the name of another one: its tools would have the same
// names.
func named(before []*commonv1.McpServer, s *commonv1.McpServer) error {
	if slices.ContainsFunc(before, func(o *commonv1.McpServer) bool { return o.GetName() == s.GetName() }) {
		return fmt.Errorf("another MCP server of this session has the name %s; rename one", s.GetName())
	}
	return nil
}

// Find returns the tool of a call. Without one, it returns what the model should know.
func (p *Pool) Find(ctx context.Context, c Caller, servers []*commonv1.McpServer, name string) (*tool.Tool, string) {
	server, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "__")
	i := slices.IndexFunc(servers, func(s *commonv1.McpServer) bool { return s.GetName() == server })
	if i < 0 {
		return nil, fmt.Sprintf("There is no MCP server %q for this agent, so there is no tool %q.", cut(server, 100), cut(name, 200))
	}
	s := servers[i]
	l, err := p.link(ctx, c, s)
	if err != nil {
		return nil, away(s, plain(err))
	}
	defer l.release()
	waiting, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	v := l.ready(waiting)
	if v.state != connected {
		return nil, away(s, v.message())
	}
	if e, ok := v.catalog.find(name); ok && offered(s, e.own) {
		return p.runnable(c, s, e), ""
	}
	// The server may have said that its list changes, and the list may be on its way.
	l.nudge()
	return nil, fmt.Sprintf("The MCP server %s has no tool %q.%s", s.GetName(), cut(name, 200), have(s, v.catalog))
}

// away is the model's text for a call of a server that cannot be used.
func away(s *commonv1.McpServer, why string) string {
	return fmt.Sprintf("The MCP server %s cannot be used now: %s. The call was not made. Go on without it, or make the call again later.", s.GetName(), why)
}

// have lists a server's tools for the model.
func have(s *commonv1.McpServer, c catalog) string {
	var names []string
	for _, e := range c.entries {
		if offered(s, e.own) {
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

// offered reports whether the agent gets a tool of a server.
func offered(s *commonv1.McpServer, own string) bool {
	return !slices.Contains(s.GetDisabledTools(), own) && (len(s.GetTools()) == 0 || slices.Contains(s.GetTools(), own))
}

// runnable returns the tool with the way to run it.
func (p *Pool) runnable(c Caller, s *commonv1.McpServer, e entry) *tool.Tool {
	t := *e.tool
	t.Runner = runner{pool: p, caller: c, server: s, own: e.own, repeatable: t.Idempotent}
	return &t
}

// message says what is wrong with a server that cannot be used.
func (v view) message() string {
	if v.fault != "" || v.state != connecting {
		return v.fault
	}
	return "it is being connected"
}

func status(s *commonv1.McpServer, v view) *commonv1.McpServerStatus {
	st := &commonv1.McpServerStatus{Name: s.GetName(), State: v.state, Required: s.GetRequired(), Message: v.message()}
	if v.state == connected {
		st.Message = v.catalog.summary()
	}
	if !v.since.IsZero() {
		st.ConnectTime = timestamppb.New(v.since)
	}
	if v.session == nil {
		return st
	}
	if init := v.session.InitializeResult(); init != nil {
		st.ProtocolVersion = cut(init.ProtocolVersion, 64)
		if info := init.ServerInfo; info != nil {
			st.Server = cut(strings.TrimSpace(strings.ToValidUTF8(info.Name+" "+info.Version, "\uFFFD")), 200)
		}
	}
	return st
}
