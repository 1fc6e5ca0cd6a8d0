package main

import (
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools"
)

// profilesCommand makes and changes permission profiles.
type profilesCommand struct {
	List   lists[listProfiles, *toolsv1.Profile]  `cmd:"" help:"List the profiles."`
	Get    shows[aProfile, *toolsv1.Profile]      `cmd:"" help:"Show a profile."`
	Create shows[createProfile, *toolsv1.Profile] `cmd:"" help:"Create a profile from a file."`
	Update shows[updateProfile, *toolsv1.Profile] `cmd:"" help:"Replace the rules of a profile by those of a file."`
	Delete does[deleteProfile]                    `cmd:"" help:"Delete a profile. Calls of agents that name it are refused."`
}

// profileName names a profile.
type profileName struct {
	Profile string `arg:"" help:"The profile."`
}

func (n profileName) name() string { return "profiles/" + bare(n.Profile) }

// profileFile is the file of a profile.
type profileFile struct {
	File        string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with the keys of one profile of tools.profiles (docs/permissions.md)."`
	Description string `placeholder:"TEXT" help:"What the profile is for."`
	rules       *commonv1.PermissionRules
}

func (f *profileFile) ready() (err error) {
	f.rules, err = tools.ProfileFile(f.File)
	return err
}

func (f profileFile) profile() *toolsv1.Profile {
	return &toolsv1.Profile{Description: f.Description, Rules: f.rules}
}

// sourceOf says where a profile comes from.
func sourceOf(p *toolsv1.Profile) string {
	return strings.ToLower(strings.TrimPrefix(p.GetSource().String(), "PROFILE_SOURCE_"))
}

// aProfile is a command that shows a profile.
type aProfile struct {
	profileName
	jsonOne
	once
}

func (f aProfile) request() proto.Message {
	return &toolsv1.GetProfileRequest{Name: f.name()}
}

func (aProfile) show(s stdio, p *toolsv1.Profile) error {
	rows := [][]string{{"profile", bare(p.GetName())}, {"source", sourceOf(p)}, {"description", p.GetDescription()}, {"etag", p.GetEtag()}, {"updated", stamp(p.GetUpdateTime())}}
	return whole(s.out, append(rows, ruleRows(p.GetRules())...)) // a person reads every rule
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

type listProfiles struct{ jsonList }

func (listProfiles) request() proto.Message { return &toolsv1.ListProfilesRequest{} }

func (listProfiles) row(p *toolsv1.Profile) [][]string {
	return [][]string{{"PROFILE", bare(p.GetName())}, {"SOURCE", sourceOf(p)}, {"UPDATED", stamp(p.GetUpdateTime())}, {"DESCRIPTION", p.GetDescription()}}
}

type createProfile struct {
	profileFile
	aProfile
}

func (f createProfile) request() proto.Message {
	return &toolsv1.CreateProfileRequest{ProfileId: bare(f.Profile), Profile: f.profile()}
}

type updateProfile struct {
	profileFile
	aProfile
	Etag string `placeholder:"ETAG" help:"Change the profile only if it still has this etag."`
}

func (f updateProfile) request() proto.Message {
	return &toolsv1.UpdateProfileRequest{Name: f.name(), Profile: f.profile(), Etag: f.Etag}
}

type deleteProfile struct {
	profileName
	once
}

func (f deleteProfile) request() proto.Message {
	return &toolsv1.DeleteProfileRequest{Name: f.name()}
}

func (f deleteProfile) done() string { return "deleted " + bare(f.name()) }
