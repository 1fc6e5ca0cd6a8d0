package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
)

// agentsCommand makes and changes agents.
type agentsCommand struct {
	List     lists[listAgents, *sessionv1.Agent]               `cmd:"" help:"List the agents."`
	Get      shows[anAgent, *sessionv1.Agent]                  `cmd:"" help:"Show an agent."`
	Create   shows[createAgent, *sessionv1.Agent]              `cmd:"" help:"Create an agent from a file."`
	Update   shows[updateAgent, *sessionv1.Agent]              `cmd:"" help:"Make a new version of an agent from a file."`
	Versions lists[listAgentVersions, *sessionv1.AgentVersion] `cmd:"" set:"one=version, with its spec," help:"List an agent's versions, the newest first."`
	Rollback shows[rollbackAgent, *sessionv1.Agent]            `cmd:"" help:"Make a new version with the content of an earlier one."`
	Archive  shows[archiveAgent, *sessionv1.Agent]             `cmd:"" help:"Archive an agent: it takes no new sessions."`
}

// agentFile is the file of an agent.
type agentFile struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with the keys of one agent of session.agents (docs/agents.md)."`
	spec *sessionv1.AgentSpec
}

func (f *agentFile) ready() (err error) {
	f.spec, err = session.AgentFile(f.File)
	return err
}

// agentName names an agent.
type agentName struct {
	Agent string `arg:"" help:"The agent."`
}

func (a agentName) name() string { return "agents/" + bare(a.Agent) }

// newest returns the number of the agent's newest version.
func (a agentName) newest(ctx context.Context, b *backend) (int32, error) {
	found, err := get[*sessionv1.Agent](ctx, b, &sessionv1.GetAgentRequest{Name: a.name()})
	return max(found.GetVersion(), 1), err // an agent of the configuration file has none: the server says why it cannot be changed
}

// anAgent is a command that shows an agent.
type anAgent struct {
	agentName
	jsonOne
}

func (a anAgent) request() proto.Message { return &sessionv1.GetAgentRequest{Name: a.name()} }

func (anAgent) show(s stdio, a *sessionv1.Agent) error {
	return columns(s.out, [][]string{
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

type listAgents struct {
	Archived bool `help:"Also list archived agents."`
	jsonList
}

func (f listAgents) request() proto.Message {
	return &sessionv1.ListAgentsRequest{ShowArchived: f.Archived}
}

func (listAgents) row(a *sessionv1.Agent) [][]string {
	return [][]string{
		{"AGENT", bare(a.GetName())}, {"VERSION", version32(a.GetVersion())}, {"MODEL", a.GetModel()}, {"PROFILE", a.GetProfile()},
		{"DESCRIPTION", a.GetDescription()},
	}
}

type createAgent struct {
	agentFile
	anAgent
}

func (f createAgent) request() proto.Message {
	return &sessionv1.CreateAgentRequest{AgentId: bare(f.Agent), Spec: f.spec}
}

type updateAgent struct {
	agentFile
	Expected int32 `placeholder:"N" help:"The newest version that you know. The default is the newest one."`
	anAgent
}

func (f updateAgent) request() proto.Message {
	return &sessionv1.UpdateAgentRequest{Name: f.name(), Spec: f.spec, ExpectedVersion: f.Expected}
}

func (f updateAgent) complete(ctx context.Context, b *backend, r proto.Message) (err error) {
	if update := r.(*sessionv1.UpdateAgentRequest); f.Expected == 0 {
		update.ExpectedVersion, err = f.newest(ctx, b)
	}
	return err
}

type rollbackAgent struct {
	anAgent
	Version int32 `arg:"" help:"The version to go back to."`
}

func (f rollbackAgent) request() proto.Message {
	return &sessionv1.RollbackAgentRequest{Name: f.name(), Version: f.Version}
}

func (f rollbackAgent) complete(ctx context.Context, b *backend, r proto.Message) (err error) {
	r.(*sessionv1.RollbackAgentRequest).ExpectedVersion, err = f.newest(ctx, b)
	return err
}

type archiveAgent struct {
	Undo bool `help:"Bring the agent back."`
	anAgent
}

func (f archiveAgent) request() proto.Message {
	return &sessionv1.ArchiveAgentRequest{Name: f.name(), Undo: f.Undo}
}

type listAgentVersions struct {
	agentName
	jsonList
}

func (f listAgentVersions) request() proto.Message {
	return &sessionv1.ListAgentVersionsRequest{Parent: f.name()}
}

func (listAgentVersions) row(v *sessionv1.AgentVersion) [][]string {
	note := ""
	if v.GetRestoredFrom() > 0 {
		note = fmt.Sprintf("as version %d", v.GetRestoredFrom())
	}
	return [][]string{
		{"VERSION", version32(v.GetVersion())}, {"REVISION", v.GetRevision()}, {"MADE", stamp(v.GetCreateTime())}, {"BY", v.GetUser()}, {"NOTE", note},
	}
}
