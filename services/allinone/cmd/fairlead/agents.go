package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session"
)

// agentsCommand makes and changes agents.
type agentsCommand struct {
	List     listAgentsCommand    `cmd:"" help:"List the agents."`
	Get      getAgentCommand      `cmd:"" help:"Show an agent."`
	Create   createAgentCommand   `cmd:"" help:"Create an agent from a file."`
	Update   updateAgentCommand   `cmd:"" help:"Make a new version of an agent from a file."`
	Versions listVersionsCommand  `cmd:"" help:"List an agent's versions, the newest first."`
	Rollback rollbackAgentCommand `cmd:"" help:"Make a new version with the content of an earlier one."`
	Archive  archiveAgentCommand  `cmd:"" help:"Archive an agent: it takes no new sessions."`
}

// agentFile is the file of an agent.
type agentFile struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with the keys of one agent of session.agents (docs/agents.md)."`
}

// agentRef names an agent.
type agentRef struct {
	Agent string `arg:"" help:"The agent."`
}

func (r agentRef) name() string { return "agents/" + bare(r.Agent) }

// newest returns the number of the agent's newest version.
func (r agentRef) newest(ctx context.Context, b *backend) (int32, error) {
	resp, err := b.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: r.name()})
	if err == nil && resp.GetAgent().GetVersion() == 0 {
		return 1, nil // of the configuration file: the server says why it cannot be changed
	}
	return resp.GetAgent().GetVersion(), err
}

// agentOutput is how a command shows an agent.
type agentOutput struct {
	JSON bool `name:"json" help:"Print the agent as JSON."`
}

func (o agentOutput) print(w io.Writer, a *sessionv1.Agent) error {
	if o.JSON {
		return printJSON(w, []*sessionv1.Agent{a})
	}
	return columns(w, [][]string{
		{"agent", bare(a.GetName())}, {"version", version32(a.GetVersion())}, {"revision", a.GetRevision()}, {"model", a.GetModel()},
		{"profile", a.GetProfile()}, {"tools", strings.Join(a.GetTools(), " ")}, {"description", a.GetDescription()},
		{"updated", stamp(a.GetUpdateTime())}, {"archived", stamp(a.GetArchiveTime())},
	})
}

// version32 returns a version's number, or where an agent without versions comes from.
func version32(n int32) string {
	if n == 0 {
		return "configuration"
	}
	return strconv.Itoa(int(n))
}

// listAgentsCommand lists agents.
type listAgentsCommand struct {
	Archived bool `help:"Also list archived agents."`
	JSON     bool `name:"json" help:"Print one JSON agent per line."`
	target
}

// Run lists agents.
func (c listAgentsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Agent
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.agents.ListAgents(ctx, &sessionv1.ListAgentsRequest{PageSize: size, PageToken: token, ShowArchived: c.Archived})
			all = append(all, resp.GetAgents()...)
			return len(resp.GetAgents()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"AGENT", "VERSION", "MODEL", "PROFILE", "DESCRIPTION"}}
		for _, a := range all {
			rows = append(rows, []string{bare(a.GetName()), version32(a.GetVersion()), a.GetModel(), a.GetProfile(), a.GetDescription()})
		}
		return columns(s.out, rows)
	})
}

// getAgentCommand shows an agent.
type getAgentCommand struct {
	agentRef
	agentOutput
	target
}

// Run shows an agent.
func (c getAgentCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: c.name()})
		if err != nil {
			return terminal.Explained(err)
		}
		return c.print(s.out, resp.GetAgent())
	})
}

// createAgentCommand creates an agent.
type createAgentCommand struct {
	agentRef
	agentFile
	agentOutput
	target
}

// Run creates an agent.
func (c createAgentCommand) Run(ctx context.Context, s stdio) error {
	spec, err := session.AgentFile(c.File)
	if err != nil {
		return err
	}
	r := &sessionv1.CreateAgentRequest{AgentId: bare(c.Agent), Spec: spec, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return c.change(ctx, s.out, func() (*sessionv1.Agent, error) {
			resp, err := b.agents.CreateAgent(ctx, r)
			return resp.GetAgent(), err
		})
	})
}

// change makes a change, which may be repeated, and shows the agent.
func (o agentOutput) change(ctx context.Context, w io.Writer, request func() (*sessionv1.Agent, error)) error {
	var a *sessionv1.Agent
	err := retry(ctx, func() (err error) {
		a, err = request()
		return err
	})
	if err != nil {
		return terminal.Explained(err)
	}
	return o.print(w, a)
}

// updateAgentCommand makes a new version.
type updateAgentCommand struct {
	agentRef
	agentFile
	Expected int32 `placeholder:"N" help:"The newest version that you know. The default is the newest one."`
	agentOutput
	target
}

// Run makes a new version.
func (c updateAgentCommand) Run(ctx context.Context, s stdio) error {
	spec, err := session.AgentFile(c.File)
	if err != nil {
		return err
	}
	r := &sessionv1.UpdateAgentRequest{Name: c.name(), Spec: spec, ExpectedVersion: c.Expected, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) (err error) {
		if r.ExpectedVersion == 0 {
			if r.ExpectedVersion, err = c.newest(ctx, b); err != nil {
				return terminal.Explained(err)
			}
		}
		return c.change(ctx, s.out, func() (*sessionv1.Agent, error) {
			resp, err := b.agents.UpdateAgent(ctx, r)
			return resp.GetAgent(), err
		})
	})
}

// rollbackAgentCommand goes back to an earlier version.
type rollbackAgentCommand struct {
	agentRef
	Version int32 `arg:"" help:"The version to go back to."`
	agentOutput
	target
}

// Run goes back to an earlier version.
func (c rollbackAgentCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.RollbackAgentRequest{Name: c.name(), Version: c.Version, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) (err error) {
		if r.ExpectedVersion, err = c.newest(ctx, b); err != nil {
			return terminal.Explained(err)
		}
		return c.change(ctx, s.out, func() (*sessionv1.Agent, error) {
			resp, err := b.agents.RollbackAgent(ctx, r)
			return resp.GetAgent(), err
		})
	})
}

// archiveAgentCommand archives an agent.
type archiveAgentCommand struct {
	agentRef
	Undo bool `help:"Bring the agent back."`
	agentOutput
	target
}

// Run archives an agent.
func (c archiveAgentCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.ArchiveAgentRequest{Name: c.name(), Undo: c.Undo, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return c.change(ctx, s.out, func() (*sessionv1.Agent, error) {
			resp, err := b.agents.ArchiveAgent(ctx, r)
			return resp.GetAgent(), err
		})
	})
}

// listVersionsCommand lists an agent's versions.
type listVersionsCommand struct {
	agentRef
	JSON bool `name:"json" help:"Print one JSON version, with its spec, per line."`
	target
}

// Run lists an agent's versions.
func (c listVersionsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.AgentVersion
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.agents.ListAgentVersions(ctx, &sessionv1.ListAgentVersionsRequest{Parent: c.name(), PageSize: size, PageToken: token})
			all = append(all, resp.GetVersions()...)
			return len(resp.GetVersions()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"VERSION", "REVISION", "MADE", "BY", "NOTE"}}
		for _, v := range all {
			note := ""
			if v.GetRestoredFrom() > 0 {
				note = fmt.Sprintf("as version %d", v.GetRestoredFrom())
			}
			rows = append(rows, []string{version32(v.GetVersion()), v.GetRevision(), stamp(v.GetCreateTime()), v.GetUser(), note})
		}
		return columns(s.out, rows)
	})
}
