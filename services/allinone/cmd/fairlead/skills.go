package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// skillsCommand is about skills.
type skillsCommand struct {
	Add      addSkillCommand                               `cmd:"" help:"Make a skill of a folder with a SKILL.md, or a new version of it."`
	List     lists[listSkills, *sessionv1.Skill]           `cmd:"" help:"List skills."`
	Versions lists[skillVersions, *sessionv1.SkillVersion] `cmd:"" set:"one=version" help:"List the versions of a skill."`
	Remove   does[removeSkill]                             `cmd:"" help:"Delete a skill with all its versions."`
}

// skillOwner is to whom skills belong.
type skillOwner struct {
	User string `help:"The user to whom the skills belong; me is the caller. The default is the tenant."`
}

func (o skillOwner) name() string {
	if o.User == "" {
		return ""
	}
	return "users/" + strings.TrimPrefix(o.User, "users/")
}

func skillName(name string) string { return "skills/" + strings.TrimPrefix(name, "skills/") }

type addSkillCommand struct {
	Folder string `arg:"" name:"dir" help:"The folder."`
	JSON   bool   `name:"json" help:"Print the skill as JSON."`
	skillOwner
	target
}

// skillFileTTL is how long the uploaded archive is kept if its deletion fails.
const skillFileTTL = time.Hour

// Run makes a skill or a version.
func (c addSkillCommand) Run(ctx context.Context, s stdio) error {
	archive, err := zipFolder(c.Folder)
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		file, err := b.uploadFile(ctx, &sessionv1.CreateFileRequest{
			File: &sessionv1.File{Filename: "skill.zip", MediaType: "application/zip", Size: proto.Int64(int64(len(archive)))},
			Ttl:  durationpb.New(skillFileTTL),
		}, bytes.NewReader(archive))
		if err != nil {
			return terminal.Explained(err)
		}
		made, err := b.putSkill(ctx, c.name(), file.GetName())
		_, _ = b.ask(ctx, &sessionv1.DeleteFileRequest{Name: file.GetName()}) // its time comes
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, made)
		}
		_, err = fmt.Fprintf(s.out, "%s has version %d; new sessions of agents with this skill, or with \"*\", get it\n", made.GetName(), made.GetVersion())
		return err
	})
}

// putSkill makes a skill of a file, or a new version of the skill that has its name.
func (b *backend) putSkill(ctx context.Context, user, file string) (*sessionv1.Skill, error) {
	made, err := change[*sessionv1.Skill](ctx, b, &sessionv1.CreateSkillRequest{User: user, File: file})
	taken, ok := apierr.Detail[*errdetails.ResourceInfo](err)
	if apierr.Code(err) == codes.AlreadyExists && ok {
		found, err := get[*sessionv1.Skill](ctx, b, &sessionv1.GetSkillRequest{Name: taken.GetResourceName(), User: user})
		if err != nil {
			return nil, err
		}
		return change[*sessionv1.Skill](ctx, b, &sessionv1.UpdateSkillRequest{
			Name: taken.GetResourceName(), User: user, File: file, ExpectedVersion: found.GetVersion(),
		})
	}
	return made, err
}

// maxSkillFolder bounds what is read of a folder. The server has a bound of its own.
const maxSkillFolder = 256 << 20

// zipFolder returns a zip of a folder, without what Git keeps in it.
func zipFolder(dir string) ([]byte, error) {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, usage("there is no folder %s: name the folder that has the skill's SKILL.md", dir)
	case !info.IsDir():
		return nil, usage("%s is no folder", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "SKILL.md")); err != nil {
		return nil, usage("%s is no skill: it has no SKILL.md", dir)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return usage("%s is a link or a device: a skill has files and folders alone", name)
		case b.Len() > maxSkillFolder:
			return usage("%s has more than %d bytes", dir, maxSkillFolder)
		}
		return zipFile(w, dir, name)
	})
	err = errors.Join(err, w.Close()) // which writes the end
	return b.Bytes(), err
}

func zipFile(w *zip.Writer, dir, name string) error {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	h, err := zip.FileInfoHeader(st)
	if err != nil {
		return err
	}
	h.Name, h.Method = filepath.ToSlash(rel), zip.Deflate
	to, err := w.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}

type listSkills struct {
	Archived bool `help:"Also list archived skills."`
	jsonList
	skillOwner
}

func (f listSkills) request() proto.Message {
	return &sessionv1.ListSkillsRequest{User: f.name(), ShowArchived: f.Archived}
}

func (listSkills) row(x *sessionv1.Skill) [][]string {
	version := strconv.Itoa(int(x.GetVersion()))
	if x.GetGlobal() {
		version = "operator's"
	}
	return [][]string{{"NAME", strings.TrimPrefix(x.GetName(), "skills/")}, {"VERSION", version}, {"DESCRIPTION", x.GetDescription()}}
}

type skillVersions struct {
	Name string `arg:"" help:"The skill."`
	jsonList
	skillOwner
}

func (f skillVersions) request() proto.Message {
	return &sessionv1.ListSkillVersionsRequest{Parent: skillName(f.Name), User: f.name()}
}

func (skillVersions) row(v *sessionv1.SkillVersion) [][]string {
	return [][]string{
		{"VERSION", strconv.Itoa(int(v.GetVersion()))}, {"MADE", stamp(v.GetCreateTime())}, {"BY", v.GetUser()},
		{"FILES", strconv.Itoa(int(v.GetFiles()))}, {"BYTES", strconv.FormatInt(v.GetSize(), 10)},
	}
}

type removeSkill struct {
	Name string `arg:"" help:"The skill."`
	skillOwner
}

func (f removeSkill) request() proto.Message {
	return &sessionv1.DeleteSkillRequest{Name: skillName(f.Name), User: f.name()}
}

func (f removeSkill) done() string { return skillName(f.Name) + " is deleted" }
