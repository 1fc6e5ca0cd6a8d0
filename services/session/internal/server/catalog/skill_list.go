package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// GetSkill reads a skill.
func (x *SkillServer) GetSkill(ctx context.Context, r *sessionv1.GetSkillRequest) (*sessionv1.GetSkillResponse, error) {
	owner, name := skillOwner(ctx, r.User), strings.TrimPrefix(r.Name, "skills/")
	row, err := x.Store.GetAgent(ctx, principal.Tenant(ctx), directory.SkillRow(owner, name), 0)
	if g, ok := x.Directory.Skills.Global(name); ok && owner == "" && errors.Is(err, store.ErrNotFound) {
		return &sessionv1.GetSkillResponse{Skill: globalSkill(g)}, nil
	}
	if err != nil {
		return nil, refusal.Skill(err, r.Name, "")
	}
	out, err := skillProto(row)
	return &sessionv1.GetSkillResponse{Skill: out}, err
}

// ListSkills lists a page of skills. A skill of the tenant hides the operator's of its name.
func (x *SkillServer) ListSkills(ctx context.Context, r *sessionv1.ListSkillsRequest) (*sessionv1.ListSkillsResponse, error) {
	tenant, owner := principal.Tenant(ctx), skillOwner(ctx, r.User)
	scope := fmt.Sprintf("ListSkills\x00%s\x00%s\x00%t", tenant, owner, r.ShowArchived)
	collection := strings.TrimSuffix(directory.SkillRow(owner, ""), "/")
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByName, func(after string, n int) ([]*sessionv1.Skill, error) {
		behind := ""
		if after != "" {
			behind = collection + strings.TrimPrefix(after, "skills")
		}
		rows, err := x.Store.ListAgents(ctx, tenant, collection, behind, r.ShowArchived, n)
		if err != nil {
			return nil, err
		}
		return x.merge(rows, owner, after, n)
	})
	return &sessionv1.ListSkillsResponse{Skills: all, NextPageToken: next}, err
}

// merge returns the first n of the stored skills, and of the operator's if they are the tenant's, behind
// after, by name.
func (x *SkillServer) merge(rows []store.AgentRow, owner, after string, n int) ([]*sessionv1.Skill, error) {
	var all []*sessionv1.Skill
	taken := map[string]bool{}
	for _, row := range rows {
		s, err := skillProto(row)
		if err != nil {
			return nil, err
		}
		taken[s.Name] = true
		all = append(all, s)
	}
	if owner == "" {
		for _, g := range x.Directory.Skills.Globals() {
			if s := globalSkill(g); s.Name > after && !taken[s.Name] {
				all = append(all, s)
			}
		}
		slices.SortFunc(all, func(a, b *sessionv1.Skill) int { return strings.Compare(a.Name, b.Name) })
	}
	return all[:min(n, len(all))], nil
}

// ListSkillVersions lists a page of versions.
func (x *SkillServer) ListSkillVersions(
	ctx context.Context, r *sessionv1.ListSkillVersionsRequest,
) (*sessionv1.ListSkillVersionsResponse, error) {
	tenant, owner := principal.Tenant(ctx), skillOwner(ctx, r.User)
	if _, err := x.GetSkill(ctx, &sessionv1.GetSkillRequest{Name: r.Parent, User: r.User}); err != nil {
		return nil, err
	}
	row := directory.SkillRow(owner, strings.TrimPrefix(r.Parent, "skills/"))
	scope := "ListSkillVersions\x00" + tenant + "\x00" + row
	list := func(before int32, n int) (some []*sessionv1.SkillVersion, _ error) {
		rows, err := x.Store.ListAgentVersions(ctx, tenant, row, before, n)
		for _, row := range rows {
			v, err := skillVersionProto(row)
			if err != nil {
				return nil, err
			}
			some = append(some, v)
		}
		return some, err
	}
	all, next, err := request.List(scope, r, refusal.Subject{}, (*sessionv1.SkillVersion).GetVersion, list)
	return &sessionv1.ListSkillVersionsResponse{Versions: all, NextPageToken: next}, err
}

func skillVersionProto(row store.AgentRow) (*sessionv1.SkillVersion, error) {
	spec, _, name, err := directory.SkillOf(row)
	if err != nil {
		return nil, err
	}
	return &sessionv1.SkillVersion{
		Name: fmt.Sprintf("skills/%s/versions/%d", name, row.Version), Version: row.Version, Description: spec.Description,
		Files: spec.Files, Size: spec.Size, Digest: spec.Digest, CreateTime: timestamppb.New(row.VersionTime), User: row.User, RestoredFrom: row.RestoredFrom,
	}, nil
}
