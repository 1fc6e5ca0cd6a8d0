// Package mcp has the MCP servers that agents, sessions and users bring: their settings and
// rules, and what of them may be shown.
//
// A server is passed to the tools service by value with every request; see Resolve. Only the
// tools service connects to it.
package mcp

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/variable"
)

// MaxServers bounds the servers of an agent, a session or a user.
const MaxServers = 32

// Server is one server. It has a command or a URL.
type Server struct {
	Command       string            `key:"command" json:"command,omitempty" help:"the program in the session's sandbox that speaks on its standard input and output"`
	Args          []string          `key:"args" json:"args,omitempty" help:"the command's arguments"`
	Env           map[string]string `key:"env" json:"env,omitempty" secret:"true" help:"further variables of the command's environment; ${NAME} stands for the acting user's variable"`
	URL           string            `key:"url" json:"url,omitempty" help:"the endpoint of a server on the network"`
	Headers       map[string]string `key:"headers" json:"headers,omitempty" secret:"true" help:"headers of each request; ${NAME} stands for the acting user's variable"`
	SSE           bool              `key:"sse" json:"sse,omitempty" help:"speak HTTP with SSE as of 2024-11-05, not streamable HTTP"`
	OAuth         OAuth             `key:"oauth" json:"oauth,omitzero" help:"how users log in, where that cannot be discovered"`
	Required      bool              `key:"required" json:"required,omitempty" help:"fail a turn when the server cannot be used"`
	Tools         []string          `key:"tools" json:"tools,omitempty" help:"the server's tools that the agent gets, by the server's own names; none: all"`
	DisabledTools []string          `key:"disabled-tools" json:"disabled_tools,omitempty" help:"the server's tools that the agent does not get"`
	Timeout       time.Duration     `key:"timeout" json:"timeout,omitempty" help:"the most time of one call; 0: that of any call"`
	Trusted       bool              `key:"trusted" json:"trusted,omitempty" help:"believe what the server says of its tools: that one reads only or may be repeated"`
}

// OAuth is what a server's authorization server knows of Fairlead.
type OAuth struct {
	ClientID     string   `key:"client-id" json:"client_id,omitempty" help:"the client's id; empty: it is registered when it is needed"`
	ClientSecret string   `key:"client-secret" json:"client_secret,omitempty" secret:"true" help:"the client's secret, as ${NAME} for the acting user's variable"`
	Scopes       []string `key:"scopes" json:"scopes,omitempty" help:"the scopes to ask for; none: those that the server names"`
}

func (o OAuth) empty() bool { return o.ClientID == "" && o.ClientSecret == "" && len(o.Scopes) == 0 }

// Servers are servers by name.
type Servers map[string]Server

// From returns the servers that a client sent. The first of two with the same name counts; see
// Check.
func From(all []*commonv1.McpServer) Servers {
	if len(all) == 0 {
		return nil
	}
	out := Servers{}
	for _, p := range all {
		if _, taken := out[p.GetName()]; !taken {
			out[p.GetName()] = fromProto(p)
		}
	}
	return out
}

func fromProto(p *commonv1.McpServer) Server {
	o := p.GetHttp().GetOauth()
	return Server{
		Command: p.GetStdio().GetCommand(), Args: p.GetStdio().GetArgs(), Env: p.GetStdio().GetEnv(),
		URL: p.GetHttp().GetUrl(), Headers: p.GetHttp().GetHeaders(), SSE: p.GetHttp().GetSse(),
		OAuth:    OAuth{ClientID: o.GetClientId(), ClientSecret: o.GetClientSecret(), Scopes: o.GetScopes()},
		Required: p.GetRequired(), Tools: p.GetTools(), DisabledTools: p.GetDisabledTools(), Timeout: p.GetTimeout().AsDuration(), Trusted: p.GetTrusted(),
	}
}

// Protos returns the servers in the order of their names.
func (s Servers) Protos() []*commonv1.McpServer {
	var all []*commonv1.McpServer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[name].proto(name))
	}
	return all
}

// Names returns the names, sorted.
func (s Servers) Names() []string { return slices.Sorted(maps.Keys(s)) }

func (s Server) proto(name string) *commonv1.McpServer {
	p := &commonv1.McpServer{Name: name, Required: s.Required, Tools: s.Tools, DisabledTools: s.DisabledTools, Trusted: s.Trusted}
	if s.Timeout != 0 {
		p.Timeout = durationpb.New(s.Timeout)
	}
	if s.URL == "" {
		p.Transport = &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: s.Command, Args: s.Args, Env: s.Env}}
		return p
	}
	http := &commonv1.McpHttp{Url: s.URL, Headers: s.Headers, Sse: s.SSE}
	if !s.OAuth.empty() {
		http.Oauth = &commonv1.McpOAuth{ClientId: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, Scopes: s.OAuth.Scopes}
	}
	p.Transport = &commonv1.McpServer_Http{Http: http}
	return p
}

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	urlForm    = regexp.MustCompile(`^https?://[^/?#]`)
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")
)

// ownHeaders are set by the client of a server itself.
var ownHeaders = []string{
	"accept", "connection", "content-length", "content-type", "host", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version",
	"mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade",
}

// Check returns the first rule that the servers break. It knows only the rules of this service.
func (s Servers) Check() error {
	if len(s) > MaxServers {
		return fmt.Errorf("%d servers are more than %d", len(s), MaxServers)
	}
	for _, name := range s.Names() {
		if err := s[name].check(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// CheckProtos is Check for servers that a client sent: names may repeat, and hidden values may have come back.
func CheckProtos(all []*commonv1.McpServer) error {
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p.GetName()] {
			return fmt.Errorf("two servers are named %s", p.GetName())
		}
		seen[p.GetName()] = true
	}
	return From(all).Check()
}

func (s Server) check(name string) error {
	switch {
	case !nameForm.MatchString(name) || strings.Contains(name, "__") || strings.HasSuffix(name, "_"):
		return fmt.Errorf("a name is 1 to 32 letters, digits, dashes and underscores, without two underscores in a row or one at the end")
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("a server has either a command or a url")
	case s.Timeout < 0:
		return fmt.Errorf("timeout: %v is negative", s.Timeout)
	case s.URL != "":
		return s.checkHTTP()
	default:
		return s.checkStdio()
	}
}

func (s Server) checkHTTP() error {
	switch {
	case !urlForm.MatchString(s.URL) || strings.ContainsAny(s.URL, " \t\r\n"):
		return fmt.Errorf("url: the endpoint begins with https:// or http:// and a host")
	case len(s.Args) > 0 || len(s.Env) > 0:
		return fmt.Errorf("args and env are for a server with a command")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value := s.Headers[name]
		switch {
		case !headerForm.MatchString(name):
			return fmt.Errorf("headers: %q is not the name of a header", name)
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			return fmt.Errorf("headers: %s is set by the client itself", name)
		case value == Hidden:
			return hiddenValue("headers." + name)
		case len(value) > variable.MaxBytes || strings.ContainsAny(value, "\r\n\x00"):
			return fmt.Errorf("headers: the value of %s has a line break, or more than %d bytes", name, variable.MaxBytes)
		}
	}
	if s.OAuth.ClientSecret == Hidden {
		return hiddenValue("oauth.client_secret")
	}
	return nil
}

func (s Server) checkStdio() error {
	if len(s.Headers) > 0 || s.SSE || !s.OAuth.empty() {
		return fmt.Errorf("headers, sse and oauth are for a server with a url")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if s.Env[name] == Hidden {
			return hiddenValue("env." + name)
		}
		if err := variable.Check(name, s.Env[name]); err != nil {
			return fmt.Errorf("env: %w", err)
		}
	}
	for _, text := range append([]string{s.Command}, s.Args...) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("command and args: a text has a zero byte")
		}
	}
	return nil
}

func hiddenValue(field string) error {
	return fmt.Errorf("%s: %s stands for a value that the service does not show; send the value, or ${NAME} for a variable of the user", field, Hidden)
}

// Merge returns the servers of a session: its own come before its agent's, and these before its
// user's. The names are unique.
func Merge(session, agent, user []*commonv1.McpServer) []*commonv1.McpServer {
	var all []*commonv1.McpServer
	seen := map[string]bool{}
	for _, some := range [][]*commonv1.McpServer{session, agent, user} {
		for _, s := range some {
			if !seen[s.GetName()] {
				seen[s.GetName()] = true
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *commonv1.McpServer) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}
