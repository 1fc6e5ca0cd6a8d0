package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// SkillServer implements SkillService.
type SkillServer struct {
	sessionv1.UnimplementedSkillServiceServer
	*Config
}

// skillOwner returns the id of the user to whom a request's skills belong; empty for the tenant's.
func skillOwner(ctx context.Context, asked string) string {
	if asked == "users/me" {
		return request.User(ctx)
	}
	return strings.TrimPrefix(asked, "users/")
}

// mayChange refuses to let anyone but an operator change a skill of the tenant. The gate has checked that a
// user's skill belongs to the caller, or that the caller is an operator.
func mayChange(ctx context.Context, owner string) error {
	if owner != "" || request.Caller(ctx).Role >= principal.RoleOperator {
		return nil
	}
	return apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonRoleRequired,
		"Only an operator may change the skills of the tenant. Name a user for a skill of your own: user=users/me, or fairlead skills --user me.",
		apierr.Metadata(map[string]string{"role": principal.RoleOperator.String()}))
}

// CreateSkill makes a skill.
func (x *SkillServer) CreateSkill(ctx context.Context, r *sessionv1.CreateSkillRequest) (*sessionv1.CreateSkillResponse, error) {
	owner := skillOwner(ctx, r.User)
	f, err := x.read(ctx, owner, r.File)
	if err != nil {
		return nil, err
	}
	place := id.New()
	out, err := x.write(ctx, owner, place, f, store.AgentWrite{Request: request.Lasting("CreateSkill", owner, r)})
	return &sessionv1.CreateSkillResponse{Skill: out}, err
}

// UpdateSkill makes a new version.
func (x *SkillServer) UpdateSkill(ctx context.Context, r *sessionv1.UpdateSkillRequest) (*sessionv1.UpdateSkillResponse, error) {
	owner := skillOwner(ctx, r.User)
	f, err := x.read(ctx, owner, r.File)
	if err != nil {
		return nil, err
	}
	if "skills/"+f.Name != r.Name {
		return nil, refusal.SkillFaults(&skill.Error{Faults: []skill.Fault{{File: "SKILL.md", Text: fmt.Sprintf("name is %q, and a version of %s keeps its name", f.Name, r.Name)}}})
	}
	newest, err := x.newest(ctx, owner, r.Name)
	if err != nil {
		return nil, err
	}
	out, err := x.write(ctx, owner, newest.Store, f, store.AgentWrite{
		Expected: r.ExpectedVersion, Request: request.Lasting("UpdateSkill", directory.SkillRow(owner, f.Name), r),
	})
	return &sessionv1.UpdateSkillResponse{Skill: out}, err
}

// newest returns the newest version of a skill that may be changed.
func (x *SkillServer) newest(ctx context.Context, owner, name string) (directory.SkillSpec, error) {
	row, err := x.Store.GetAgent(ctx, principal.Tenant(ctx), directory.SkillRow(owner, strings.TrimPrefix(name, "skills/")), 0)
	if errors.Is(err, store.ErrNotFound) {
		return directory.SkillSpec{}, x.missing(owner, name)
	}
	if err != nil {
		return directory.SkillSpec{}, refusal.Skill(err, name, "")
	}
	spec, _, _, err := directory.SkillOf(row)
	return spec, err
}

// missing returns the error for a skill that the tenant or user does not have.
func (x *SkillServer) missing(owner, name string) error {
	if _, ok := x.Directory.Skills.Global(strings.TrimPrefix(name, "skills/")); ok && owner == "" {
		return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SKILL_READ_ONLY,
			fmt.Sprintf("%s is a skill of the operator's, which the API does not change. Create one of the same name for the tenant, which comes before it.", name),
			apierr.Precondition("SKILL", name, "read-only"))
	}
	return refusal.SkillNotFound(name)
}

// RollbackSkill makes a new version with the files of an earlier one.
func (x *SkillServer) RollbackSkill(ctx context.Context, r *sessionv1.RollbackSkillRequest) (*sessionv1.RollbackSkillResponse, error) {
	owner, tenant := skillOwner(ctx, r.User), principal.Tenant(ctx)
	if err := mayChange(ctx, owner); err != nil {
		return nil, err
	}
	row := directory.SkillRow(owner, strings.TrimPrefix(r.Name, "skills/"))
	old, err := x.Store.GetAgent(ctx, tenant, row, r.Version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, x.missing(owner, r.Name)
	}
	if err != nil {
		return nil, refusal.Skill(err, r.Name, r.RequestId)
	}
	out, err := x.put(ctx, owner, store.AgentWrite{
		AgentRevision: old.AgentRevision, Expected: r.ExpectedVersion, RestoredFrom: r.Version, Request: request.Lasting("RollbackSkill", row, r),
	})
	return &sessionv1.RollbackSkillResponse{Skill: out}, err
}

// read reads the skill of an uploaded file.
func (x *SkillServer) read(ctx context.Context, owner, name string) (*skill.Folder, error) {
	if err := mayChange(ctx, owner); err != nil {
		return nil, err
	}
	if err := x.Directory.Skills.Ready(); err != nil {
		return nil, refusal.Skill(err, "", "")
	}
	row, err := x.Files.Find(ctx, request.Caller(ctx), name)
	if err != nil {
		return nil, refusal.File(err, name, "")
	}
	limits := x.Directory.Skills.Limits()
	switch {
	case row.File.GetState() != sessionv1.FileState_FILE_STATE_READY:
		return nil, refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE,
			"The upload of "+name+" has not ended. Send the rest of it first.", apierr.Precondition("FILE_STATE", name, "the upload has not ended"))
	case row.File.GetSize() > limits.ArchiveBytes():
		return nil, refusal.SkillFaults(&skill.Error{Faults: []skill.Fault{{Text: fmt.Sprintf("the archive has %d bytes, and the archive of a skill may have %d", row.File.GetSize(), limits.ArchiveBytes())}}})
	}
	archive, err := x.Files.ReadAll(ctx, row)
	if err != nil {
		if blob.Unavailable(err) {
			x.Log.WarnContext(ctx, "a file cannot be served", "file", name, "error", err)
		}
		return nil, refusal.File(err, name, "")
	}
	f, err := skill.Read(archive, limits)
	if err != nil {
		return nil, refusal.Skill(err, "", "")
	}
	return f, nil
}

// write keeps the files of a version at a place, and writes the version.
func (x *SkillServer) write(ctx context.Context, owner, place string, f *skill.Folder, w store.AgentWrite) (*sessionv1.Skill, error) {
	digest, err := x.Directory.Skills.Keep(ctx, principal.Tenant(ctx), place, f)
	if err != nil {
		x.Log.WarnContext(ctx, "cannot keep the files of a skill", "error", err)
		return nil, refusal.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE, "The store of files cannot be reached. Try again, with the same request id.")
	}
	body, err := json.Marshal(directory.SkillSpec{
		Description: f.Description, License: f.License, AllowedTools: f.AllowedTools, Files: int32(f.Count()), Size: f.Size(), Digest: digest, Store: place,
	})
	if err != nil {
		return nil, err
	}
	w.AgentRevision = store.AgentRevision{Name: directory.SkillRow(owner, f.Name), Revision: digest + "." + place, Spec: body}
	return x.put(ctx, owner, w)
}

// put writes a version and reads the skill.
func (x *SkillServer) put(ctx context.Context, owner string, w store.AgentWrite) (*sessionv1.Skill, error) {
	c := x.Directory.Skills
	w.Most, w.MostVersions = c.Tenant, c.Versions
	if owner != "" {
		w.Most = c.User
	}
	_, name, _ := strings.Cut(w.Name, "skills/")
	row, err := x.Config.write(ctx, w, func(err error, _, requestID string) error { return refusal.Skill(err, "skills/"+name, requestID) })
	if err != nil {
		return nil, err
	}
	return skillProto(row)
}

func skillProto(row store.AgentRow) (*sessionv1.Skill, error) {
	spec, owner, name, err := directory.SkillOf(row)
	if err != nil {
		return nil, err
	}
	out := &sessionv1.Skill{
		Name: "skills/" + name, Version: row.Version, Description: spec.Description, License: spec.License, AllowedTools: spec.AllowedTools,
		Files: spec.Files, Size: spec.Size, Digest: spec.Digest, CreateTime: timestamppb.New(row.CreateTime), UpdateTime: timestamppb.New(row.VersionTime),
	}
	if owner != "" {
		out.User = "users/" + owner
	}
	if row.ArchiveTime != nil {
		out.ArchiveTime = timestamppb.New(*row.ArchiveTime)
	}
	return out, nil
}

func globalSkill(g skill.Global) *sessionv1.Skill {
	return &sessionv1.Skill{
		Name: "skills/" + g.Name, Description: g.Description, License: g.License, AllowedTools: g.AllowedTools,
		Files: int32(g.Files), Size: g.Size, Digest: g.Digest, Global: true,
	}
}

// ArchiveSkill archives a skill, or brings it back.
func (x *SkillServer) ArchiveSkill(ctx context.Context, r *sessionv1.ArchiveSkillRequest) (*sessionv1.ArchiveSkillResponse, error) {
	owner, tenant := skillOwner(ctx, r.User), principal.Tenant(ctx)
	if err := mayChange(ctx, owner); err != nil {
		return nil, err
	}
	row := directory.SkillRow(owner, strings.TrimPrefix(r.Name, "skills/"))
	_, err := x.Store.ArchiveAgent(ctx, store.ArchiveAgent{
		Tenant: tenant, Name: row, Undo: r.Undo, Request: request.Lasting("ArchiveSkill", row, r),
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, x.missing(owner, r.Name)
	}
	if err != nil {
		return nil, refusal.Skill(err, r.Name, r.RequestId)
	}
	found, err := x.Store.GetAgent(ctx, tenant, row, 0)
	if err != nil {
		return nil, refusal.Skill(err, r.Name, r.RequestId)
	}
	out, err := skillProto(found)
	return &sessionv1.ArchiveSkillResponse{Skill: out}, err
}

// DeleteSkill deletes a skill with its files.
func (x *SkillServer) DeleteSkill(ctx context.Context, r *sessionv1.DeleteSkillRequest) (*sessionv1.DeleteSkillResponse, error) {
	owner, tenant := skillOwner(ctx, r.User), principal.Tenant(ctx)
	if err := mayChange(ctx, owner); err != nil {
		return nil, err
	}
	row := directory.SkillRow(owner, strings.TrimPrefix(r.Name, "skills/"))
	d := store.DeleteAgent{Tenant: tenant, Name: row, Request: request.Lasting("DeleteSkill", row, r)}
	spec, err := x.newest(ctx, owner, r.Name)
	switch {
	case err == nil:
		d.Jobs = []store.Job{skill.DropJob(tenant, spec.Store)}
	case !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND): // a repeated request finds none, either
		return nil, err
	}
	if _, err := x.Store.DeleteAgent(ctx, d); err != nil {
		return nil, refusal.Skill(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteSkillResponse{}, nil
}
