package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/tools"
)

// profilesCommand makes and changes permission profiles.
type profilesCommand struct {
	List   listProfilesCommand  `cmd:"" help:"List the profiles."`
	Get    getProfileCommand    `cmd:"" help:"Show a profile."`
	Create createProfileCommand `cmd:"" help:"Create a profile from a file."`
	Update updateProfileCommand `cmd:"" help:"Replace the rules of a profile by those of a file."`
	Delete deleteProfileCommand `cmd:"" help:"Delete a profile. Calls of agents that name it are refused."`
}

// profileRef names a profile.
type profileRef struct {
	Profile string `arg:"" help:"The profile."`
}

func (r profileRef) name() string { return "profiles/" + bare(r.Profile) }

// profileFile is the file of a profile.
type profileFile struct {
	File        string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with the keys of one profile of tools.profiles (docs/permissions.md)."`
	Description string `placeholder:"TEXT" help:"What the profile is for."`
	JSON        bool   `name:"json" help:"Print the profile as JSON."`
}

func (f profileFile) read() (*toolsv1.Profile, error) {
	rules, err := tools.ProfileFile(f.File)
	return &toolsv1.Profile{Description: f.Description, Rules: rules}, err
}

// sourceOf says where a profile comes from.
func sourceOf(p *toolsv1.Profile) string {
	return strings.ToLower(strings.TrimPrefix(p.GetSource().String(), "PROFILE_SOURCE_"))
}

func printProfile(w io.Writer, p *toolsv1.Profile, asJSON bool) error {
	if asJSON {
		return printJSON(w, []*toolsv1.Profile{p})
	}
	rows := [][]string{{"profile", bare(p.GetName())}, {"source", sourceOf(p)}, {"description", p.GetDescription()}, {"etag", p.GetEtag()}, {"updated", stamp(p.GetUpdateTime())}}
	return whole(w, append(rows, ruleRows(p.GetRules())...)) // a person reads every rule
}

// ruleRows has a row for each list of rules that is not empty.
func ruleRows(r *commonv1.PermissionRules) (rows [][]string) {
	for _, l := range []struct {
		name  string
		rules []string
	}{
		{"interrupt", r.GetInterrupt()}, {"deny", r.GetDeny()}, {"ask", r.GetAsk()}, {"allow", r.GetAllow()},
		{"enabled-tools", r.GetEnabledTools()}, {"disabled-tools", r.GetDisabledTools()}, {"directories", r.GetDirectories()},
	} {
		if len(l.rules) > 0 {
			rows = append(rows, []string{l.name, strings.Join(l.rules, "  ")})
		}
	}
	return rows
}

// listProfilesCommand lists profiles.
type listProfilesCommand struct {
	JSON bool `name:"json" help:"Print one JSON profile per line."`
	target
}

// Run lists profiles.
func (c listProfilesCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*toolsv1.Profile
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.profiles.ListProfiles(ctx, &toolsv1.ListProfilesRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetProfiles()...)
			return len(resp.GetProfiles()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"PROFILE", "SOURCE", "UPDATED", "DESCRIPTION"}}
		for _, p := range all {
			rows = append(rows, []string{bare(p.GetName()), sourceOf(p), stamp(p.GetUpdateTime()), p.GetDescription()})
		}
		return columns(s.out, rows)
	})
}

// getProfileCommand shows a profile.
type getProfileCommand struct {
	profileRef
	JSON bool `name:"json" help:"Print the profile as JSON."`
	target
}

// Run shows a profile.
func (c getProfileCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.profiles.GetProfile(ctx, &toolsv1.GetProfileRequest{Name: c.name()})
		if err != nil {
			return terminal.Explained(err)
		}
		return printProfile(s.out, resp.GetProfile(), c.JSON)
	})
}

// createProfileCommand makes a profile.
type createProfileCommand struct {
	profileRef
	profileFile
	target
}

// Run makes a profile.
func (c createProfileCommand) Run(ctx context.Context, s stdio) error {
	p, err := c.read()
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.profiles.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: bare(c.Profile), Profile: p, RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		return printProfile(s.out, resp.GetProfile(), c.JSON)
	})
}

// updateProfileCommand changes a profile.
type updateProfileCommand struct {
	profileRef
	profileFile
	Etag string `placeholder:"ETAG" help:"Change the profile only if it still has this etag."`
	target
}

// Run changes a profile.
func (c updateProfileCommand) Run(ctx context.Context, s stdio) error {
	p, err := c.read()
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.profiles.UpdateProfile(ctx, &toolsv1.UpdateProfileRequest{Name: c.name(), Profile: p, Etag: c.Etag, RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		return printProfile(s.out, resp.GetProfile(), c.JSON)
	})
}

// deleteProfileCommand deletes a profile.
type deleteProfileCommand struct {
	profileRef
	target
}

// Run deletes a profile.
func (c deleteProfileCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		_, err := b.profiles.DeleteProfile(ctx, &toolsv1.DeleteProfileRequest{Name: c.name(), RequestId: id.New()})
		if err == nil {
			_, err = fmt.Fprintln(s.out, "deleted", bare(c.name()))
		}
		return terminal.Explained(err)
	})
}
