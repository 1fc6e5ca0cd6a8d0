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
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// skillsCommand is about skills.
type skillsCommand struct {
	Add      addSkillCommand      `cmd:"" help:"Make a skill of a folder with a SKILL.md, or a new version of it."`
	List     listSkillsCommand    `cmd:"" help:"List skills."`
	Versions skillVersionsCommand `cmd:"" help:"List the versions of a skill."`
	Remove   removeSkillCommand   `cmd:"" help:"Delete a skill with all its versions."`
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
			Ttl:  durationpb.New(skillFileTTL), RequestId: id.New(),
		}, bytes.NewReader(archive))
		if err != nil {
			return terminal.Explained(err)
		}
		made, err := b.putSkill(ctx, c.name(), file.GetName())
		_, _ = b.blobs.DeleteFile(ctx, &sessionv1.DeleteFileRequest{Name: file.GetName(), RequestId: id.New()}) // its time comes
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
func (b *backend) putSkill(ctx context.Context, user, file string) (made *sessionv1.Skill, err error) {
	create := &sessionv1.CreateSkillRequest{User: user, File: file, RequestId: id.New()}
	err = retry(ctx, func() error {
		resp, err := b.skills.CreateSkill(ctx, create)
		made = resp.GetSkill()
		return err
	})
	taken, ok := apierr.Detail[*errdetails.ResourceInfo](err)
	if apierr.Code(err) != codes.AlreadyExists || !ok {
		return made, err
	}
	found, err := b.skills.GetSkill(ctx, &sessionv1.GetSkillRequest{Name: taken.GetResourceName(), User: user})
	if err != nil {
		return nil, err
	}
	update := &sessionv1.UpdateSkillRequest{
		Name: taken.GetResourceName(), User: user, File: file, ExpectedVersion: found.GetSkill().GetVersion(), RequestId: id.New(),
	}
	err = retry(ctx, func() error {
		resp, err := b.skills.UpdateSkill(ctx, update)
		made = resp.GetSkill()
		return err
	})
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

type listSkillsCommand struct {
	Archived bool `help:"Also list archived skills."`
	JSON     bool `name:"json" help:"Print one JSON skill per line."`
	skillOwner
	target
}

// Run lists skills.
func (c listSkillsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Skill
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.skills.ListSkills(ctx, &sessionv1.ListSkillsRequest{User: c.name(), ShowArchived: c.Archived, PageSize: size, PageToken: token})
			all = append(all, resp.GetSkills()...)
			return len(resp.GetSkills()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"NAME", "VERSION", "DESCRIPTION"}}
		for _, x := range all {
			version := strconv.Itoa(int(x.GetVersion()))
			if x.GetGlobal() {
				version = "operator's"
			}
			rows = append(rows, []string{strings.TrimPrefix(x.GetName(), "skills/"), version, x.GetDescription()})
		}
		return columns(s.out, rows)
	})
}

type skillVersionsCommand struct {
	Name string `arg:"" help:"The skill."`
	JSON bool   `name:"json" help:"Print one JSON version per line."`
	skillOwner
	target
}

// Run lists the versions of a skill.
func (c skillVersionsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.SkillVersion
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.skills.ListSkillVersions(ctx, &sessionv1.ListSkillVersionsRequest{Parent: skillName(c.Name), User: c.name(), PageSize: size, PageToken: token})
			all = append(all, resp.GetVersions()...)
			return len(resp.GetVersions()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"VERSION", "MADE", "BY", "FILES", "BYTES"}}
		for _, v := range all {
			rows = append(rows, []string{
				strconv.Itoa(int(v.GetVersion())), stamp(v.GetCreateTime()), v.GetUser(), strconv.Itoa(int(v.GetFiles())), strconv.FormatInt(v.GetSize(), 10),
			})
		}
		return columns(s.out, rows)
	})
}

type removeSkillCommand struct {
	Name string `arg:"" help:"The skill."`
	skillOwner
	target
}

// Run deletes a skill.
func (c removeSkillCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteSkillRequest{Name: skillName(c.Name), User: c.name(), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.skills.DeleteSkill(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is deleted\n", r.GetName())
		return err
	})
}
