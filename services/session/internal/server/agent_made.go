package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	kitaudit "github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// agentScope is the scope of the RPCs that make agents, which need an operator.
const agentScope = "agents.write"

// writesAgents reports whether the caller may make agents.
func writesAgents(ctx context.Context) bool {
	p, _ := principal.From(ctx)
	return p.Role >= principal.RoleOperator && p.Role < principal.RoleService && p.Allows(agentScope)
}

// madeAgent is the arguments of create_agent and edit_agent, which are valid by their schemas.
type madeAgent struct {
	Name        string    `json:"name"`
	Version     int32     `json:"version"`
	Description *string   `json:"description"`
	Prompt      *string   `json:"prompt"`
	Tools       *[]string `json:"tools"`
	Model       *string   `json:"model"`
}

// MakeAgent makes an agent for another one, by the rules of CreateAgent and UpdateAgent, as the user of the turn. The
// call's id is the request's, so a call makes one version, whatever is killed.
func (a *AgentServer) MakeAgent(ctx context.Context, c calls.AgentCall, log *audit.Recorder) (told string, refused bool, err error) {
	ctx = principal.With(ctx, principal.Principal{Tenant: c.Tenant, User: c.User, Role: principal.RoleOperator, Credential: c.Turn})
	made, method, err := a.makeAgent(ctx, c)
	e := kitaudit.Entry{
		Tenant: c.Tenant, Time: time.Now(), User: c.User, Credential: c.Turn, Client: "local", Method: "fairlead.session.v1.AgentService." + method,
		Resource: made.GetName(), RequestID: c.ID, Code: audit.Code(err), Reason: apierr.Reason(err),
	}
	message, final := refusedForGood(err)
	if err != nil && !final && apierr.Code(err) != codes.Aborted {
		return "", false, err
	}
	if noted := log.Record(ctx, e, true); noted != nil {
		return "", false, noted
	}
	if err != nil {
		if message == "" {
			message = strings.TrimSpace(apierr.Message(err))
		}
		return message, true, nil
	}
	return fmt.Sprintf("%s has version %d now. New sessions that name it get this version.", made.Name, made.Version), false, nil
}

func (a *AgentServer) makeAgent(ctx context.Context, c calls.AgentCall) (made *sessionv1.Agent, method string, err error) {
	method = "CreateAgent"
	if c.Tool == state.EditAgentTool {
		method = "UpdateAgent"
	}
	var asked madeAgent
	if err := json.Unmarshal([]byte(c.Arguments), &asked); err != nil {
		return nil, method, badInput("arguments", "The arguments cannot be read: "+err.Error())
	}
	if err := a.mayMake(ctx, c); err != nil {
		return nil, method, err
	}
	name := agentName(asked.Name)
	if err := a.writable(name); err != nil {
		return nil, method, err
	}
	maker, err := filtered(c)
	if err != nil {
		return nil, method, err
	}
	base, digest := mostOf(maker), sha256.Sum256([]byte(c.Tool+"\x00"+c.Arguments))
	w := store.AgentWrite{Request: keepForADay(store.Request{Method: "MakeAgent", Parent: c.Turn, ID: c.ID, Digest: digest[:]})}
	if c.Tool == state.EditAgentTool {
		old, err := a.s.Store.GetAgent(ctx, c.Tenant, name, 0)
		if err != nil {
			return nil, method, agentError(err, name, "")
		}
		spec, err := agent.Unmarshal(old.Spec)
		if err != nil {
			return nil, method, err
		}
		if base, err = a.edited(c, name, base, spec); err != nil {
			return nil, method, err
		}
		if w.Expected = asked.Version; w.Expected == 0 {
			w.Expected = old.Version
		}
	}
	spec, err := asked.apply(base, c.Maker, a.s.DefaultModel)
	if err != nil {
		return nil, method, err
	}
	made, err = a.write(ctx, asked.Name, spec.ToProto(), w)
	return made, method, err
}

// mayMake refuses a call whose user may not make agents: by the credential with which the turn was accepted, and by the
// user's role now.
func (a *AgentServer) mayMake(ctx context.Context, c calls.AgentCall) error {
	u, err := a.s.Store.GetUser(ctx, store.Owner{Tenant: c.Tenant, User: c.User})
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = &sessionv1.User{Role: commonv1.Role_ROLE_ADMIN} // of an issuer: the claims alone have counted
	case err != nil:
		return storeError(err, subject{})
	}
	if c.Allowed && !u.Disabled && u.Role >= commonv1.Role_ROLE_OPERATOR {
		return nil
	}
	return fail(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("users/%s may not make agents: this needs the role operator and the scope %s, when the turn begins and now. Turns of schedules and triggers have neither.", c.User, agentScope))
}

// makers are the tools that no made agent gets.
var makers = []string{state.CreateAgentTool, state.EditAgentTool}

// filtered returns the maker with all that narrows its profile, as what it makes has it.
func filtered(c calls.AgentCall) (agent.Spec, error) {
	switch len(c.Filters) {
	case 0:
		return c.Maker, nil
	case 1:
		return c.Maker.WithFilter(c.Filters[0]), nil
	}
	return c.Maker, fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("This session may make no agents: %d sets of permission rules narrow what it may do, and an agent has only one. An operator can make the agent with `fairlead agents create`.", len(c.Filters)),
		apierr.Precondition("SESSION", c.Turn, "has more rules than an agent"))
}

// mostOf returns the most that an agent may make: itself, without what is its own conversation's.
func mostOf(maker agent.Spec) agent.Spec {
	maker.Pinned, maker.Greeting, maker.Parameters, maker.Verdict, maker.OutputSchema, maker.PreCompaction, maker.MetadataJSON = nil, "", nil, "", "", "", ""
	maker.Tools = slices.DeleteFunc(slices.Clone(maker.Tools), func(t string) bool { return slices.Contains(makers, t) })
	return maker
}

// edited returns the base of an agent's next version. It refuses to change an agent with other settings than those that
// the maker gives: its new prompt could use what the maker does not have.
func (a *AgentServer) edited(c calls.AgentCall, name string, base, old agent.Spec) (agent.Spec, error) {
	base.Description, base.Prompt, base.Model, base.Tools, base.MetadataJSON = old.Description, old.Prompt, old.Model, old.Tools, old.MetadataJSON
	if agent.New(c.ID, base).Revision == agent.New(c.ID, old).Revision {
		return base, nil
	}
	return base, fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("%s has other settings than this agent can give, such as its profile, environment or limits. An operator can change it with `fairlead agents update`.", name),
		apierr.Precondition("AGENT", name, "has other settings"))
}

// apply returns a spec with what was asked for, if the maker has it.
func (m madeAgent) apply(s, maker agent.Spec, defaultModel string) (agent.Spec, error) {
	if m.Description != nil {
		s.Description = *m.Description
	}
	if m.Prompt != nil {
		s.Prompt = *m.Prompt
	}
	if m.Tools != nil {
		s.Tools = *m.Tools
	}
	if m.Model != nil {
		s.Model = *m.Model
	}
	most := mostOf(maker).Tools
	for _, t := range s.Tools {
		if !slices.Contains(most, t) {
			return s, beyondMaker("tools", fmt.Sprintf("%s is not a tool that this agent can give; those are %s", t, strings.Join(most, ", ")))
		}
	}
	if s.Model != maker.Model && s.Model != "" && s.Model != defaultModel && !agent.AllowsModel(maker, s.Model, defaultModel) {
		return s, beyondMaker("model", fmt.Sprintf("%s is not a model that this agent may use", s.Model))
	}
	return s, nil
}

func beyondMaker(field, what string) error {
	return fail(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC, "The agent cannot be made: "+what+".", apierr.Field(field, what))
}
