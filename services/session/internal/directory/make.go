package directory

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	kitaudit "github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Making is a call of create_agent or edit_agent, whose arguments are valid by its schema.
type Making struct {
	Tenant, User string
	// Turn and ID name the call.
	Turn, ID string
	// Allowed says that the user's credential could make agents when the turn was accepted.
	Allowed bool
	// Maker is the agent that calls. What it makes can do no more, by the same filters.
	Maker           agent.Spec
	Filters         []*commonv1.PermissionRules
	Tool, Arguments string
}

// agentScope is the scope of the RPCs that make agents, which need an operator.
const agentScope = "agents.write"

// MayMake reports whether the caller may make agents.
func MayMake(ctx context.Context) bool {
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
// call's id is the request's, so a call makes one version, whatever is killed. It returns what the model is told, and whether
// the call was refused.
func (d *Directory) MakeAgent(ctx context.Context, c Making) (told string, refused bool, err error) {
	ctx = principal.With(ctx, principal.Principal{Tenant: c.Tenant, User: c.User, Role: principal.RoleOperator, Credential: c.Turn})
	name, version, method, err := d.makeAgent(ctx, c)
	e := kitaudit.Entry{
		Tenant: c.Tenant, Time: time.Now(), User: c.User, Credential: c.Turn, Client: "local", Method: "fairlead.session.v1.AgentService." + method,
		Resource: name, RequestID: c.ID, Code: audit.Code(err), Reason: apierr.Reason(err),
	}
	message, final := refusal.Final(err)
	if err != nil && !final && !refusal.Conflict(err) {
		return "", false, err
	}
	if noted := d.Recorder.Record(ctx, e, true); noted != nil {
		return "", false, noted
	}
	if err != nil {
		if message == "" {
			message = strings.TrimSpace(apierr.Message(err))
		}
		return message, true, nil
	}
	return fmt.Sprintf("%s has version %d now. New sessions that name it get this version.", name, version), false, nil
}

func (d *Directory) makeAgent(ctx context.Context, c Making) (name string, version int32, method string, err error) {
	method = "CreateAgent"
	if c.Tool == agent.EditTool {
		method = "UpdateAgent"
	}
	var asked madeAgent
	if err := json.Unmarshal([]byte(c.Arguments), &asked); err != nil {
		return "", 0, method, refusal.Input("arguments", "The arguments cannot be read: "+err.Error())
	}
	if err := d.mayMake(ctx, c); err != nil {
		return "", 0, method, err
	}
	name = AgentName(asked.Name)
	if err := d.Changeable(name); err != nil {
		return "", 0, method, err
	}
	maker, err := filtered(c)
	if err != nil {
		return "", 0, method, err
	}
	base, digest := mostOf(maker), sha256.Sum256([]byte(c.Tool+"\x00"+c.Arguments))
	w := store.AgentWrite{Tenant: c.Tenant, User: c.User, Request: store.Request{
		Method: "MakeAgent", Parent: c.Turn, ID: c.ID, Digest: digest[:], KeepUntil: time.Now().Add(store.HoldTime),
	}}
	if c.Tool == agent.EditTool {
		old, err := d.Store.GetAgent(ctx, c.Tenant, name, 0)
		if err != nil {
			return "", 0, method, refusal.Agent(err, name, "")
		}
		spec, err := agent.Unmarshal(old.Spec)
		if err != nil {
			return "", 0, method, err
		}
		if base, err = edited(c, name, base, spec); err != nil {
			return "", 0, method, err
		}
		if w.Expected = asked.Version; w.Expected == 0 {
			w.Expected = old.Version
		}
	}
	spec, err := asked.apply(base, c.Maker, d.DefaultModel())
	if err != nil {
		return "", 0, method, err
	}
	name, version, err = d.WriteAgent(ctx, agent.New(strings.TrimPrefix(name, "agents/"), spec), w)
	return name, version, method, err
}

// mayMake refuses a call whose user may not make agents: by the credential with which the turn was accepted, and by the
// user's role now.
func (d *Directory) mayMake(ctx context.Context, c Making) error {
	u, err := d.Store.GetUser(ctx, store.Owner{Tenant: c.Tenant, User: c.User})
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = &sessionv1.User{Role: commonv1.Role_ROLE_ADMIN} // of an issuer: the claims alone have counted
	case err != nil:
		return refusal.Store(err, refusal.Subject{})
	}
	if c.Allowed && !u.Disabled && u.Role >= commonv1.Role_ROLE_OPERATOR {
		return nil
	}
	return refusal.MayNotMake(c.User, agentScope)
}

// makers are the tools that no made agent gets.
var makers = []string{agent.CreateTool, agent.EditTool}

// filtered returns the maker with all that narrows its profile, as what it makes has it.
func filtered(c Making) (agent.Spec, error) {
	switch len(c.Filters) {
	case 0:
		return c.Maker, nil
	case 1:
		return c.Maker.WithFilter(c.Filters[0]), nil
	}
	return c.Maker, refusal.TooManyRules(c.Turn, len(c.Filters))
}

// mostOf returns the most that an agent may make: itself, without what is its own conversation's.
func mostOf(maker agent.Spec) agent.Spec {
	maker.Pinned, maker.Greeting, maker.Parameters, maker.Verdict, maker.OutputSchema, maker.PreCompaction, maker.MetadataJSON = nil, "", nil, "", "", "", ""
	maker.Tools = slices.DeleteFunc(slices.Clone(maker.Tools), func(t string) bool { return slices.Contains(makers, t) })
	return maker
}

// edited returns the base of an agent's next version. It refuses to change an agent with other settings than those that
// the maker gives: its new prompt could use what the maker does not have.
func edited(c Making, name string, base, old agent.Spec) (agent.Spec, error) {
	base.Description, base.Prompt, base.Model, base.Tools, base.MetadataJSON = old.Description, old.Prompt, old.Model, old.Tools, old.MetadataJSON
	if agent.New(c.ID, base).Revision == agent.New(c.ID, old).Revision {
		return base, nil
	}
	return base, refusal.OtherSettings(name)
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
	return refusal.Making(field, what)
}
