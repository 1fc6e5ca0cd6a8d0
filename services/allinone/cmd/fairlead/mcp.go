package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session"
)

// mcpCommand is about the MCP servers of a user.
type mcpCommand struct {
	Add    addMCPCommand    `cmd:"" help:"Add an MCP server to all your sessions, or replace it."`
	List   listMCPCommand   `cmd:"" help:"List your MCP servers."`
	Remove removeMCPCommand `cmd:"" help:"Remove one of your MCP servers."`
	Status mcpStatusCommand `cmd:"" help:"Show what works of the MCP servers of a session."`
	Login  loginMCPCommand  `cmd:"" help:"Print the page on which you log in to an MCP server of a session."`
	Logout logoutMCPCommand `cmd:"" help:"Forget your login to an MCP server of a session."`
	Import importMCPCommand `cmd:"" help:"Add the MCP servers of a file such as .mcp.json."`
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
		r := &sessionv1.SetUserMcpServerRequest{Name: o.mcpName(server.Name), Server: server, RequestId: id.New()}
		err := retry(ctx, func() error {
			_, err := b.mcp.SetUserMcpServer(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, _ = fmt.Fprintf(out, "%s is one of your MCP servers from your next turn on\n", server.Name)
	}
	return nil
}

// listMCPCommand lists servers.
type listMCPCommand struct {
	JSON bool `name:"json" help:"Print one JSON server per line."`
	owner
	target
}

// Run lists servers.
func (c listMCPCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.UserMcpServer
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.mcp.ListUserMcpServers(ctx, &sessionv1.ListUserMcpServersRequest{Parent: c.parent(), PageSize: size, PageToken: token})
			all = append(all, resp.GetMcpServers()...)
			return len(resp.GetMcpServers()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"SERVER", "AT", "SET"}}
		for _, x := range all {
			at := x.GetServer().GetHttp().GetUrl()
			if stdio := x.GetServer().GetStdio(); stdio != nil {
				at = strings.Join(append([]string{stdio.GetCommand()}, stdio.GetArgs()...), " ")
			}
			rows = append(rows, []string{bare(x.GetName()), at, stamp(x.GetUpdateTime())})
		}
		return columns(s.out, rows)
	})
}

// mcpStatusCommand shows the servers of a session.
type mcpStatusCommand struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print one JSON server per line."`
	target
}

// Run shows the servers.
func (c mcpStatusCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.mcp.GetMcpStatus(ctx, &sessionv1.GetMcpStatusRequest{Name: sessionName(c.Session) + "/mcp"})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, resp.GetStatus().GetServers())
		}
		rows := [][]string{{"SERVER", "STATE", "TOOLS", "MESSAGE"}}
		for _, x := range resp.GetStatus().GetServers() {
			state := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(x.GetState().String(), "MCP_SERVER_STATE_"), "_", " "))
			rows = append(rows, []string{x.GetName(), state, strconv.Itoa(len(x.GetTools())), x.GetMessage()})
		}
		return whole(s.out, rows)
	})
}

// mcpOf names a server of a session.
type mcpOf struct {
	Session string `arg:"" help:"The session."`
	Name    string `arg:"" help:"The server's name."`
}

func (m mcpOf) resource() string { return sessionName(m.Session) + "/mcp/" + m.Name }

// loginMCPCommand begins a login.
type loginMCPCommand struct {
	mcpOf
	target
}

// Run begins the login.
func (c loginMCPCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.mcp.LoginMcpServer(ctx, &sessionv1.LoginMcpServerRequest{Name: c.resource()})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s\n", resp.GetAuthorizationUrl())
		_, _ = fmt.Fprintf(s.err, "Open this page in a browser before %s.\n", stamp(resp.GetExpireTime()))
		return err
	})
}

// logoutMCPCommand forgets a login.
type logoutMCPCommand struct {
	mcpOf
	target
}

// Run forgets the login.
func (c logoutMCPCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		_, err := b.mcp.LogoutMcpServer(ctx, &sessionv1.LogoutMcpServerRequest{Name: c.resource()})
		return terminal.Explained(err)
	})
}

// removeMCPCommand removes a server.
type removeMCPCommand struct {
	Name string `arg:"" help:"The server's name."`
	owner
	target
}

// Run removes the server.
func (c removeMCPCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteUserMcpServerRequest{Name: c.mcpName(c.Name), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return terminal.Explained(retry(ctx, func() error {
			_, err := b.mcp.DeleteUserMcpServer(ctx, r)
			return err
		}))
	})
}

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
