package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// Server is a server of the operator's configuration. It has a command or a URL.
type Server struct {
	Command       string            `key:"command" help:"the program in the session's sandbox that speaks on its standard input and output"`
	Args          []string          `key:"args" help:"the command's arguments"`
	Env           map[string]string `key:"env" secret:"true" help:"further variables of the command's environment; the session's commands can read them"`
	URL           string            `key:"url" help:"the endpoint of a server on the network, which may be at a private address"`
	Headers       map[string]string `key:"headers" secret:"true" help:"headers of each request"`
	SSE           bool              `key:"sse" help:"speak HTTP with SSE as of 2024-11-05, not streamable HTTP"`
	Required      bool              `key:"required" help:"fail a turn when the server cannot be used"`
	Tools         []string          `key:"tools" help:"the server's tools that agents get, by the server's own names; none: all"`
	DisabledTools []string          `key:"disabled-tools" help:"the server's tools that agents do not get"`
	Timeout       time.Duration     `key:"timeout" help:"the most time of one call; 0: 10 minutes"`
	Trusted       bool              `key:"trusted" help:"believe what the server says of its tools: that one reads only or may be repeated"`
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Check returns every fault of the operator's servers.
func Check(all map[string]Server) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		fault := func(bad bool, format string, args ...any) {
			if bad {
				faults = append(faults, fmt.Errorf("mcp-servers.%s: "+format, append([]any{name}, args...)...))
			}
		}
		fault(!nameForm.MatchString(name) || strings.Contains(name, "__") || strings.HasSuffix(name, "_"),
			"the name has at most 32 letters, digits, _ and -, begins with a letter or digit, and has neither __ nor _ at its end")
		fault((s.Command == "") == (s.URL == ""), "set either command or url")
		u, err := url.Parse(s.URL)
		fault(s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"), "url: it is not an address that begins with https:// or http://")
		fault(s.Timeout < 0, "timeout: %v is negative", s.Timeout)
	}
	return errors.Join(faults...)
}

// Servers returns the operator's servers by name.
func Servers(all map[string]Server) []*commonv1.McpServer {
	var out []*commonv1.McpServer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		p := &commonv1.McpServer{Name: name, Required: s.Required, Tools: s.Tools, DisabledTools: s.DisabledTools, Trusted: s.Trusted}
		if s.Timeout > 0 {
			p.Timeout = durationpb.New(s.Timeout)
		}
		if s.Command != "" {
			p.Transport = &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: s.Command, Args: s.Args, Env: s.Env}}
		} else {
			p.Transport = &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: s.URL, Headers: s.Headers, Sse: s.SSE}}
		}
		out = append(out, p)
	}
	return out
}

// offer is a server of a session, and what of it the agent gets.
type offer struct {
	*commonv1.McpServer
	operator bool
	// allowed are the tools of an operator's server that the agent names.
	allowed []string
	fault   error
}

// offers returns the servers of a session: those that it brings, and those of the operator
// that the agent names.
func (p *Pool) offers(servers []*commonv1.McpServer, allowed []string) []offer {
	all := make([]offer, 0, len(servers))
	for i, s := range servers {
		all = append(all, offer{McpServer: s, fault: p.named(servers[:i], s)})
	}
	for _, s := range p.Operator {
		own := slices.DeleteFunc(slices.Clone(allowed), func(name string) bool { return !strings.HasPrefix(name, prefix+s.GetName()+"__") })
		if len(own) > 0 {
			all = append(all, offer{McpServer: s, operator: true, allowed: own})
		}
	}
	return all
}

// named refuses a server with the name of another one: its tools would have the same
// names, and a permission for the operator's would hold for them.
func (p *Pool) named(before []*commonv1.McpServer, s *commonv1.McpServer) error {
	same := func(o *commonv1.McpServer) bool { return o.GetName() == s.GetName() }
	switch {
	case slices.ContainsFunc(before, same):
		return fmt.Errorf("another MCP server of this session has the name %s; rename one", s.GetName())
	case slices.ContainsFunc(p.Operator, same):
		return fmt.Errorf("the operator has an MCP server with the name %s; choose another name", s.GetName())
	}
	return nil
}

// gives reports whether the agent gets a tool.
func (o offer) gives(e entry) bool {
	if slices.Contains(o.GetDisabledTools(), e.own) || len(o.GetTools()) > 0 && !slices.Contains(o.GetTools(), e.own) {
		return false
	}
	return !o.operator || slices.ContainsFunc(o.allowed, func(name string) bool {
		start, all := strings.CutSuffix(name, "*")
		return name == e.tool.Name || all && strings.HasPrefix(e.tool.Name, start)
	})
}
