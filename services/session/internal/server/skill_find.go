package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// skillSpec is the stored form of a version of a skill.
type skillSpec struct {
	Description  string   `json:"description"`
	License      string   `json:"license,omitempty"`
	AllowedTools []string `json:"allowed_tools,omitempty"`
	Files        int32    `json:"files"`
	Size         int64    `json:"size"`
	Digest       string   `json:"digest"`
	Store        string   `json:"store"` // see agent.Skill
}

// skillRow returns the name under which the store has a skill of the tenant, or of a user if that is not empty.
func skillRow(user, name string) string {
	if user == "" {
		return "skills/" + name
	}
	return "users/" + user + "/skills/" + name
}

// skillOf reads the spec of a row, and the user and the name in its name.
func skillOf(row store.AgentRow) (s skillSpec, user, name string, err error) {
	if err := json.Unmarshal(row.Spec, &s); err != nil {
		return s, "", "", fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	before, name, _ := strings.Cut(row.Name, "skills/")
	return s, strings.TrimSuffix(strings.TrimPrefix(before, "users/"), "/"), name, nil
}

// withSkills returns the agent of a user's session with the skills of the agent and of the session, at the
// versions that the session keeps to. It keeps the revision of all together.
func (f *finder) withSkills(ctx context.Context, tenant, user string, asked []string, a agent.Agent) (agent.Agent, error) {
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
				return a, badInput(from.field, err.Error()+".")
			}
			if every = every || name == agent.Every; name != agent.Every {
				named[name], field[name] = s, from.field
			}
		}
	}
	if len(named) > agent.MaxSkills {
		return a, badInput("session.skills", fmt.Sprintf("The session and its agent name %d skills, and a session may have %d.", len(named), agent.MaxSkills))
	}
	var pinned []agent.Skill
	for name, s := range named {
		found, err := f.skill(ctx, tenant, user, s)
		if errors.Is(err, store.ErrNotFound) {
			return a, fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND,
				fmt.Sprintf("There is no skill %s for you. List the skills to see which there are (GET /v1/skills, and GET /v1/skills?user=users/me).", s),
				apierr.Resource("fairlead.dev/Skill", "skills/"+name, "not found"), apierr.Field(field[name], "names the skill "+s+", which does not exist"))
		}
		if err != nil {
			return a, err
		}
		pinned = append(pinned, found)
	}
	if every {
		var err error
		if pinned, err = f.addSkills(ctx, tenant, user, pinned); err != nil {
			return a, err
		}
	}
	if len(pinned) == 0 {
		return a, nil
	}
	slices.SortFunc(pinned, func(a, b agent.Skill) int { return strings.Compare(a.Name, b.Name) })
	made := agent.New(a.ID, a.Spec.WithSkills(pinned))
	made.Version = a.Version
	return made, storeError(f.keep(ctx, tenant, made), subject{})
}

// addSkills adds the unnamed skills of the user, up to the limit of a session: first
// the user's, then the tenant's, then the operator's, by name.
func (f *finder) addSkills(ctx context.Context, tenant, user string, pinned []agent.Skill) ([]agent.Skill, error) {
	add := func(s agent.Skill) {
		has := slices.ContainsFunc(pinned, func(x agent.Skill) bool { return x.Name == s.Name })
		if !has && len(pinned) < agent.MaxSkills {
			pinned = append(pinned, s)
		}
	}
	for _, owner := range slices.Compact([]string{user, ""}) {
		// As many of a list may be hidden as are pinned already.
		rows, err := f.Store.ListAgents(ctx, tenant, strings.TrimSuffix(skillRow(owner, ""), "/"), "", false, agent.MaxSkills+len(pinned))
		if err != nil {
			return nil, storeError(err, subject{})
		}
		for _, row := range rows {
			s, err := pinnedSkill(row)
			if err != nil {
				return nil, err
			}
			add(s)
		}
	}
	for _, g := range f.Skills.Globals() {
		add(agent.Skill{Name: g.Name, Description: g.Description, Digest: g.Digest})
	}
	return pinned, nil
}

// pinnedSkill returns the skill of a row as a session keeps it.
func pinnedSkill(row store.AgentRow) (agent.Skill, error) {
	spec, user, name, err := skillOf(row)
	return agent.Skill{Name: name, User: user, Version: row.Version, Description: spec.Description, Digest: spec.Digest, Store: spec.Store}, err
}

// skill finds the skill that a user's session names: the user's, the tenant's or the operator's. ErrNotFound.
func (f *finder) skill(ctx context.Context, tenant, user, asked string) (agent.Skill, error) {
	name, version, err := agent.SplitSkill(asked)
	if err != nil {
		return agent.Skill{}, err
	}
	for _, owner := range []string{user, ""} {
		row, err := f.Store.GetAgent(ctx, tenant, skillRow(owner, name), 0)
		if errors.Is(err, store.ErrNotFound) || err == nil && row.ArchiveTime != nil {
			continue
		}
		if err == nil && version > 0 {
			row, err = f.Store.GetAgent(ctx, tenant, skillRow(owner, name), version)
			if errors.Is(err, store.ErrNotFound) { // the nearest skill of the name counts
				return agent.Skill{}, err
			}
		}
		if err != nil {
			return agent.Skill{}, storeError(err, subject{})
		}
		return pinnedSkill(row)
	}
	if g, ok := f.Skills.Global(name); ok && version == 0 {
		return agent.Skill{Name: name, Description: g.Description, Digest: g.Digest}, nil
	}
	return agent.Skill{}, store.ErrNotFound
}

// skillNotFound returns the error for a skill that a request names.
func skillNotFound(name string) error {
	return fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND,
		fmt.Sprintf("There is no skill %s, or no such version. A skill of a user is named with the field user; list the skills to see which there are (GET /v1/skills).", name),
		apierr.Resource("fairlead.dev/Skill", name, "not found"))
}

// skillError is storeError for a request about one skill.
func skillError(err error, name, requestID string) error {
	var bad *skill.Error
	switch {
	case errors.As(err, &bad):
		return invalidSkill(bad)
	case errors.Is(err, store.ErrNotFound):
		return skillNotFound(name)
	case errors.Is(err, store.ErrExists):
		return fail(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a skill %s. Make a new version of it (PUT /v1/%s), or change the name in SKILL.md.", name, name),
			apierr.Resource("fairlead.dev/Skill", name, "exists already"))
	case errors.Is(err, store.ErrArchived):
		return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
			fmt.Sprintf("%s is archived: it takes no new sessions and no new versions. Bring it back first (ArchiveSkill with undo).", name),
			apierr.Precondition("SKILL", name, "archived"))
	case errors.Is(err, store.ErrTooMany):
		return fail(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			"There are as many skills, or versions of the skill, as there may be. Delete a skill, or ask the operator for more (session.skills).", apierr.Quota(name, "skills"))
	case errors.Is(err, skill.ErrNoStore):
		return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NO_FILE_STORE,
			"This server keeps no files, and so no skills: with Postgres it needs an object store that all replicas reach. Ask the operator to set session.files.store.",
			apierr.Precondition("FILE_STORE", "skills", "no store is configured"))
	}
	return storeError(err, subject{requestID: requestID})
}

// invalidSkill returns the error for an archive that is not a skill. It names each fault by its file.
func invalidSkill(bad *skill.Error) error {
	var details []apierr.Option
	for _, fault := range bad.Faults {
		field := "file"
		if fault.File != "" {
			field += "[" + fault.File + "]"
		}
		details = append(details, apierr.Field(field, fault.Text))
	}
	return fail(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SKILL,
		"The archive is not a skill, and nothing was changed. "+bad.Error()+".", details...)
}
