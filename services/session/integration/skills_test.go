package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func (f *fixture) skills() sessionv1.SkillServiceClient {
	return sessionv1.NewSkillServiceClient(f.conn)
}

// skillFile uploads the archive of a skill and returns the file's name.
func (f *fixture) skillFile(ctx context.Context, t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	content := "---\nname: " + name + "\ndescription: Says " + text + ".\n---\n" + text + "\n"
	_ = w.WriteHeader(&tar.Header{Name: "SKILL.md", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	_, _ = w.Write([]byte(content))
	_, _ = w.Close(), g.Close()
	files := sessionv1.NewFileServiceClient(f.conn)
	made, err := files.CreateFile(ctx, &sessionv1.CreateFileRequest{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := files.AppendFile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	start := &sessionv1.AppendFileStart{Name: made.File.Name, Last: true}
	_ = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}}) // CloseAndRecv tells what went wrong
	_ = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: b.Bytes()}})
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	return made.File.Name
}

func (f *fixture) skill(ctx context.Context, t *testing.T, user, name string) *sessionv1.Skill {
	t.Helper()
	made, err := f.skills().CreateSkill(ctx, &sessionv1.CreateSkillRequest{User: user, File: f.skillFile(ctx, t, name, "one")})
	if err != nil {
		t.Fatal(err)
	}
	return made.Skill
}

func TestSkillsBelongToATenantOrAUser(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	root, ann, bob := as(t.Context(), "root", principal.RoleOperator), as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser)
	other := principal.With(t.Context(), principal.Principal{Tenant: "globex", User: "eve", Role: principal.RoleAdmin})
	_, err := f.skills().CreateSkill(ann, &sessionv1.CreateSkillRequest{File: f.skillFile(ann, t, "pdf", "x")})
	if status.Code(err) != codes.PermissionDenied || apierr.Reason(err) != apierr.ReasonRoleRequired {
		t.Errorf("a user makes a skill of the tenant: %v", err)
	}
	if s := f.skill(root, t, "", "pdf"); s.Name != "skills/pdf" || s.Version != 1 || s.User != "" || s.Description != "Says one." || s.Files != 1 {
		t.Errorf("it is %v", s)
	}
	if s := f.skill(ann, t, "users/me", "pdf"); s.User != "users/ann" {
		t.Errorf("it is %v", s)
	}
	for name, try := range map[string]func(ctx context.Context) error{
		"update": func(ctx context.Context) error {
			_, err := f.skills().UpdateSkill(ctx, &sessionv1.UpdateSkillRequest{Name: "skills/pdf", ExpectedVersion: 1, File: f.skillFile(ctx, t, "pdf", "x")})
			return err
		},
		"roll back": func(ctx context.Context) error {
			_, err := f.skills().RollbackSkill(ctx, &sessionv1.RollbackSkillRequest{Name: "skills/pdf", Version: 1, ExpectedVersion: 1})
			return err
		},
		"archive": func(ctx context.Context) error {
			_, err := f.skills().ArchiveSkill(ctx, &sessionv1.ArchiveSkillRequest{Name: "skills/pdf"})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := f.skills().DeleteSkill(ctx, &sessionv1.DeleteSkillRequest{Name: "skills/pdf"})
			return err
		},
	} {
		if err := try(ann); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a user tries to %s the tenant's: %v", name, err)
		}
		if err := try(other); status.Code(err) != codes.NotFound || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SKILL_NOT_FOUND) {
			t.Errorf("another tenant tries to %s it: %v", name, err)
		}
	}
	_, err = f.skills().GetSkill(bob, &sessionv1.GetSkillRequest{Name: "skills/pdf", User: "users/ann"})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("another user reads ann's: %v", err)
	}
	_, err = f.skills().CreateSkill(bob, &sessionv1.CreateSkillRequest{User: "users/me", File: f.skillFile(ann, t, "pdf", "x")})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND) {
		t.Errorf("a skill of another user's file: %v", err)
	}
	for user, want := range map[string]string{"ann": "pdf@1", "bob": "pdf@1"} {
		ctx := as(t.Context(), user, principal.RoleUser)
		made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "tester", Skills: []string{"pdf"}}})
		if err != nil || strings.Join(made.GetSession().GetSkills(), " ") != want {
			t.Errorf("%s: %v, %v", user, made, err)
		}
	}
}

func TestSkillsAreBounded(t *testing.T) {
	t.Parallel()
	f := start(t, hello, func(c *session.Config) { c.Skills.User, c.Skills.Versions = 1, 2 })
	ann := as(t.Context(), "ann", principal.RoleUser)
	s := f.skill(ann, t, "users/me", "pdf")
	_, err := f.skills().CreateSkill(ann, &sessionv1.CreateSkillRequest{User: "users/me", File: f.skillFile(ann, t, "other", "x")})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY) {
		t.Errorf("another skill: %v", err)
	}
	for version := int32(1); version < 4; version++ {
		_, err = f.skills().UpdateSkill(ann, &sessionv1.UpdateSkillRequest{Name: s.Name, User: "users/me", ExpectedVersion: version, File: f.skillFile(ann, t, "pdf", "x")})
		if want := version >= 2; (err != nil) != want {
			t.Errorf("version %d: %v", version+1, err)
		}
	}
	_, err = f.skills().UpdateSkill(ann, &sessionv1.UpdateSkillRequest{Name: s.Name, User: "users/me", ExpectedVersion: 2, File: f.skillFile(ann, t, "other", "x")})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_INVALID_SKILL) {
		t.Errorf("a version of another name: %v", err)
	}
	if _, err := f.skills().DeleteSkill(ann, &sessionv1.DeleteSkillRequest{Name: s.Name, User: "users/me"}); err != nil {
		t.Error(err)
	}
	if s := f.skill(ann, t, "users/ann", "other"); s.Name != "skills/other" {
		t.Errorf("after the deletion: %v", s)
	}
}

func TestSessionsOfTheBuiltInAgentsHaveEverySkill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"pdf", "zip"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: d\n---\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f := start(t, hello, func(c *session.Config) { c.Skills.Dir = dir })
	root, ann := as(t.Context(), "root", principal.RoleOperator), as(t.Context(), "ann", principal.RoleUser)
	of := func(ctx context.Context, agent string, asked ...string) string {
		t.Helper()
		made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: agent, Skills: asked}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(made.Session.Skills, " ")
	}
	if got := of(ann, "coder"); got != "pdf zip" {
		t.Errorf("the operator's alone: %s", got)
	}
	f.skill(root, t, "", "pdf")
	f.skill(root, t, "", "old")
	f.skill(ann, t, "users/me", "notes")
	if _, err := f.skills().ArchiveSkill(root, &sessionv1.ArchiveSkillRequest{Name: "skills/old"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ctx   context.Context
		agent string
		asked []string
		want  string
	}{
		{ann, "coder", nil, "notes@1 pdf@1 zip"},
		{ann, "assistant", nil, "notes@1 pdf@1 zip"},
		{root, "coder", nil, "pdf@1 zip"},
		{ann, "coder", []string{"pdf@1"}, "notes@1 pdf@1 zip"},
		{ann, "tester", nil, ""},
		{ann, "tester", []string{"*"}, "notes@1 pdf@1 zip"},
	} {
		if got := of(c.ctx, c.agent, c.asked...); got != c.want {
			t.Errorf("%s with %v has %q, want %q", c.agent, c.asked, got, c.want)
		}
	}
	for i := range agent.MaxSkills {
		f.skill(root, t, "", fmt.Sprintf("b%02d", i))
	}
	if got := strings.Fields(of(ann, "coder", "zip")); len(got) != agent.MaxSkills || got[len(got)-1] != "zip" || !slices.Contains(got, "notes@1") || slices.Contains(got, "pdf@1") {
		t.Errorf("of more than there may be it has %v", got)
	}
}
