package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/session"
)

// mcpCommand is about the MCP servers of a user.
type mcpCommand struct {
	Add    addMCPCommand                                      `cmd:"" help:"Add an MCP server to all your sessions, or replace it."`
	List   lists[listMCP, *sessionv1.UserMcpServer]           `cmd:"" help:"List your MCP servers."`
	Remove does[removeMCP]                                    `cmd:"" help:"Remove one of your MCP servers."`
	Status shows[mcpStatus, *sessionv1.McpStatus]             `cmd:"" help:"Show what works of the MCP servers of a session."`
	Login  shows[loginMCP, *sessionv1.LoginMcpServerResponse] `cmd:"" help:"Print the page on which you log in to an MCP server of a session."`
	Logout does[logoutMCP]                                    `cmd:"" help:"Forget your login to an MCP server of a session."`
	Import importMCPCommand                                   `cmd:"" help:"Add the MCP servers of a file such as .mcp.json."`
}

// mcpName returns the resource name of a server.
func (o owner) mcpName(server string) string { return o.parent() + "/mcpServers/" + server }

// addMCPCommand adds a server.
type addMCPCommand struct {
	Name     string            `arg:"" help:"The server's name: its tools are mcp__NAME__TOOL."`
	Endpoint []string          `arg:"" name:"url-or-command" passthrough:"partial" help:"The URL of a server on the network, or after -- a command in the sandbox with its arguments."`
	Header   map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A header of each request; may be repeated. A value may have $${NAME} for a variable of yours."`
	Env      map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A variable of the command; may be repeated. A value may have $${NAME} for a variable of yours."`
	SSE      bool              `name:"sse" help:"Speak HTTP with SSE as of 2024-11-05."`
	Required bool              `help:"Fail turns while the server cannot be used."`
	owner
	target
}

// server returns the server of the flags.
func (c addMCPCommand) server() (*commonv1.McpServer, error) {
	given := c.Endpoint
	if given[0] == "--" {
		given = given[1:]
	}
	if len(given) == 0 {
		return nil, usage("a URL or a command is missing, as in: fairlead mcp add files -- npx -y some-server")
	}
	s := &commonv1.McpServer{Name: c.Name, Required: c.Required}
	if strings.HasPrefix(given[0], "https://") || strings.HasPrefix(given[0], "http://") {
		if len(given) > 1 || len(c.Env) > 0 {
			return nil, usage("a server with a URL takes neither arguments nor --env")
		}
		s.Transport = &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: given[0], Headers: c.Header, Sse: c.SSE}}
		return s, nil
	}
	if scheme, _, found := strings.Cut(given[0], "://"); found {
		return nil, usage("a server's URL begins with https:// or http://, not with %s://", terminal.Line(scheme, 40))
	}
	if len(c.Header) > 0 || c.SSE {
		return nil, usage("a server with a command takes neither --header nor --sse")
	}
	s.Transport = &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: given[0], Args: given[1:], Env: c.Env}}
	return s, nil
}

// Run adds the server.
func (c addMCPCommand) Run(ctx context.Context, s stdio) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return b.addMCP(ctx, s.out, c.owner, server)
	})
}

// addMCP adds servers.
func (b *backend) addMCP(ctx context.Context, out io.Writer, o owner, servers ...*commonv1.McpServer) error {
	for _, server := range servers {
		if _, err := b.repeat(ctx, &sessionv1.SetUserMcpServerRequest{Name: o.mcpName(server.Name), Server: server}); err != nil {
			return terminal.Explained(err)
		}
		_, _ = fmt.Fprintf(out, "%s is one of your MCP servers from your next turn on\n", server.Name)
	}
	return nil
}

type listMCP struct {
	jsonList
	owner
}

func (f listMCP) request() proto.Message {
	return &sessionv1.ListUserMcpServersRequest{Parent: f.parent()}
}

func (listMCP) row(x *sessionv1.UserMcpServer) [][]string {
	at := x.GetServer().GetHttp().GetUrl()
	if stdio := x.GetServer().GetStdio(); stdio != nil {
		at = strings.Join(append([]string{stdio.GetCommand()}, stdio.GetArgs()...), " ")
	}
	return [][]string{{"SERVER", bare(x.GetName())}, {"AT", at}, {"SET", stamp(x.GetUpdateTime())}}
}

type mcpStatus struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print one JSON ${one} per line."`
}

func (f mcpStatus) request() proto.Message {
	return &sessionv1.GetMcpStatusRequest{Name: sessionName(f.Session) + "/mcp"}
}

func (f mcpStatus) show(s stdio, status *sessionv1.McpStatus) error {
	if f.JSON {
		return printJSON(s.out, status.GetServers())
	}
	return whole(s.out, rowsOf(status.GetServers(), func(x *commonv1.McpServerStatus) [][]string {
		state := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(x.GetState().String(), "MCP_SERVER_STATE_"), "_", " "))
		return [][]string{{"SERVER", x.GetName()}, {"STATE", state}, {"TOOLS", strconv.Itoa(len(x.GetTools()))}, {"MESSAGE", x.GetMessage()}}
	}))
}

// mcpOf names a server of a session.
type mcpOf struct {
	Session string `arg:"" help:"The session."`
	Name    string `arg:"" help:"The server's name."`
}

func (m mcpOf) resource() string { return sessionName(m.Session) + "/mcp/" + m.Name }

type loginMCP struct{ mcpOf }

func (f loginMCP) request() proto.Message {
	return &sessionv1.LoginMcpServerRequest{Name: f.resource()}
}

func (loginMCP) show(s stdio, login *sessionv1.LoginMcpServerResponse) error {
	_, err := fmt.Fprintf(s.out, "%s\n", login.GetAuthorizationUrl())
	_, _ = fmt.Fprintf(s.err, "Open this page in a browser before %s.\n", stamp(login.GetExpireTime()))
	return err
}

type logoutMCP struct{ mcpOf }

func (f logoutMCP) request() proto.Message {
	return &sessionv1.LogoutMcpServerRequest{Name: f.resource()}
}

func (logoutMCP) done() string { return "" }

type removeMCP struct {
	Name string `arg:"" help:"The server's name."`
	owner
}

func (f removeMCP) request() proto.Message {
	return &sessionv1.DeleteUserMcpServerRequest{Name: f.mcpName(f.Name)}
}

func (removeMCP) done() string { return "" }

// importMCPCommand adds the servers of a file.
type importMCPCommand struct {
	File string `arg:"" default:".mcp.json" help:"The file."`
	owner
	target
}

// Run adds the servers.
func (c importMCPCommand) Run(ctx context.Context, s stdio) error {
	servers, err := mcpFile(s, c.File)
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return b.addMCP(ctx, s.out, c.owner, servers...)
	})
}

// mcpFile reads the servers of a file.
func mcpFile(s stdio, name string) ([]*commonv1.McpServer, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the MCP servers: %w", err)
	}
	servers, err := session.MCPFile(text, func(name string) (string, bool) {
		value := s.env(name)
		return value, value != ""
	})
	if err != nil {
		return nil, fmt.Errorf("the MCP servers of %s cannot be used: %w", name, err)
	}
	return servers, nil
}
