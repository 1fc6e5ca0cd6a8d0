package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// SkillSpec is the stored form of a version of a skill.
type SkillSpec struct {
	Description  string   `json:"description"`
	License      string   `json:"license,omitempty"`
	AllowedTools []string `json:"allowed_tools,omitempty"`
	Files        int32    `json:"files"`
	Size         int64    `json:"size"`
	Digest       string   `json:"digest"`
	Store        string   `json:"store"` // see agent.Skill
}

// SkillRow returns the name under which the store has a skill of the tenant, or of a user if that is not empty.
func SkillRow(user, name string) string {
	if user == "" {
		return "skills/" + name
	}
	return "users/" + user + "/skills/" + name
}

// SkillOf reads the spec of a row, and the user and the name in its name.
func SkillOf(row store.AgentRow) (s SkillSpec, user, name string, err error) {
	if err := json.Unmarshal(row.Spec, &s); err != nil {
		return s, "", "", fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	before, name, _ := strings.Cut(row.Name, "skills/")
	return s, strings.TrimSuffix(strings.TrimPrefix(before, "users/"), "/"), name, nil
}

// WithSkills returns the agent of a user's session with the skills of the agent and of the session, at the
// versions that the session keeps to. It keeps the revision of all together.
func (d *Directory) WithSkills(ctx context.Context, tenant, user string, asked []string, a agent.Agent) (agent.Agent, error) {
	named := map[string]string{} // the skill that is asked for, by name
	field := map[string]string{}
	every := false
	for _, from := range []struct {
		field string
		all   []string
	}{{"session.agent", a.Spec.Skills}, {"session.skills", asked}} {
		for _, s := range from.all {
			name, _, err := agent.SplitSkill(s)
			if err != nil {
				return a, refusal.Input(from.field, err.Error()+".")
			}
			if every = every || name == agent.Every; name != agent.Every {
				named[name], field[name] = s, from.field
			}
		}
	}
	if len(named) > agent.MaxSkills {
		return a, refusal.Input("session.skills", fmt.Sprintf("The session and its agent name %d skills, and a session may have %d.", len(named), agent.MaxSkills))
	}
	var pinned []agent.Skill
	for name, s := range named {
		found, err := d.skill(ctx, tenant, user, s)
		if errors.Is(err, store.ErrNotFound) {
			return a, refusal.SkillOfSession(s, name, field[name])
		}
		if err != nil {
			return a, err
		}
		pinned = append(pinned, found)
	}
	if every {
		var err error
		if pinned, err = d.addSkills(ctx, tenant, user, pinned); err != nil {
			return a, err
		}
	}
	if len(pinned) == 0 {
		return a, nil
	}
	slices.SortFunc(pinned, func(a, b agent.Skill) int { return strings.Compare(a.Name, b.Name) })
	made := agent.New(a.ID, a.Spec.WithSkills(pinned))
	made.Version = a.Version
	return made, refusal.Store(d.keep(ctx, tenant, made), refusal.Subject{})
}

// addSkills adds the unnamed skills of the user, up to the limit of a session: first
// the user's, then the tenant's, then the operator's, by name.
func (d *Directory) addSkills(ctx context.Context, tenant, user string, pinned []agent.Skill) ([]agent.Skill, error) {
	add := func(s agent.Skill) {
		has := slices.ContainsFunc(pinned, func(x agent.Skill) bool { return x.Name == s.Name })
		if !has && len(pinned) < agent.MaxSkills {
			pinned = append(pinned, s)
		}
	}
	for _, owner := range slices.Compact([]string{user, ""}) {
		// As many of a list may be hidden as are pinned already.
		rows, err := d.Store.ListAgents(ctx, tenant, strings.TrimSuffix(SkillRow(owner, ""), "/"), "", false, agent.MaxSkills+len(pinned))
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
		for _, row := range rows {
			s, err := pinnedSkill(row)
			if err != nil {
				return nil, err
			}
			add(s)
		}
	}
	for _, g := range d.Skills.Globals() {
		add(agent.Skill{Name: g.Name, Description: g.Description, Digest: g.Digest})
	}
	return pinned, nil
}

// pinnedSkill returns the skill of a row as a session keeps it.
func pinnedSkill(row store.AgentRow) (agent.Skill, error) {
	spec, user, name, err := SkillOf(row)
	return agent.Skill{Name: name, User: user, Version: row.Version, Description: spec.Description, Digest: spec.Digest, Store: spec.Store}, err
}

// skill finds the skill that a user's session names: the user's, the tenant's or the operator's. ErrNotFound.
func (d *Directory) skill(ctx context.Context, tenant, user, asked string) (agent.Skill, error) {
	name, version, err := agent.SplitSkill(asked)
	if err != nil {
		return agent.Skill{}, err
	}
	for _, owner := range []string{user, ""} {
		row, err := d.Store.GetAgent(ctx, tenant, SkillRow(owner, name), 0)
		if errors.Is(err, store.ErrNotFound) || err == nil && row.ArchiveTime != nil {
			continue
		}
		if err == nil && version > 0 {
			row, err = d.Store.GetAgent(ctx, tenant, SkillRow(owner, name), version)
			if errors.Is(err, store.ErrNotFound) { // the nearest skill of the name counts
				return agent.Skill{}, err
			}
		}
		if err != nil {
			return agent.Skill{}, refusal.Store(err, refusal.Subject{})
		}
		return pinnedSkill(row)
	}
	if g, ok := d.Skills.Global(name); ok && version == 0 {
		return agent.Skill{Name: name, Description: g.Description, Digest: g.Digest}, nil
	}
	return agent.Skill{}, store.ErrNotFound
}
