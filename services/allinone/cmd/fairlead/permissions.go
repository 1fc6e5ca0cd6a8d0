package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools"
)

// permissionsCommand explains decisions, and shows what was allowed for longer.
type permissionsCommand struct {
	Explain shows[explain, *toolsv1.ExplainCallResponse]         `cmd:"" set:"one=explanation" help:"Say what a profile decides on a call, and why. Nothing is run."`
	Mode    shows[setMode, *sessionv1.SetPermissionModeResponse] `cmd:"" help:"Change the permission mode of the turn that runs in a session."`
	Grants  lists[listGrants, *toolsv1.Grant]                    `cmd:"" help:"List what was allowed for longer than one call, the newest first."`
	Revoke  does[revokeGrant]                                    `cmd:"" help:"Take back what was allowed: the next call is asked about again."`
}

// setMode changes the mode of a running turn.
type setMode struct {
	Session string `arg:"" help:"The session."`
	Mode    string `arg:"" enum:"default,accept-edits,plan,bypass" help:"The mode: ${enum}."`
}

func (f setMode) request() proto.Message {
	return &sessionv1.SetPermissionModeRequest{Name: sessionName(f.Session), PermissionMode: modeOf(f.Mode)}
}

func (f setMode) show(s stdio, changed *sessionv1.SetPermissionModeResponse) error {
	_, err := fmt.Fprintf(s.out, "%s goes on in the mode %s\n", changed.GetTurn(), f.Mode)
	return err
}

// explain explains a decision.
type explain struct {
	Tool      string   `arg:"" help:"The tool, such as Bash."`
	Arguments string   `arg:"" optional:"" help:"The arguments as JSON; for Bash the command, for a tool with a path the path, for Task the subagent, for Skill the skill."`
	Profile   string   `default:"full" placeholder:"NAME" help:"The profile that decides: ${default} by default."`
	Mode      string   `default:"default" enum:"default,accept-edits,plan,bypass" help:"The mode: ${enum}."`
	Filter    []string `placeholder:"FILE" help:"A YAML file with rules that narrow the profile; may be repeated."`
	Session   string   `placeholder:"ID" help:"The session whose grants count."`
	jsonOne
	filters []*commonv1.PermissionRules
}

// arguments returns the arguments as JSON.
func (f explain) arguments() string {
	if f.Arguments == "" || strings.HasPrefix(strings.TrimSpace(f.Arguments), "{") {
		return f.Arguments
	}
	key := map[string]string{"Bash": "command", "Grep": "path", "Glob": "path", "LS": "path", "Task": "subagent_type", "Skill": "skill"}[f.Tool]
	b, err := json.Marshal(map[string]string{cmp.Or(key, "file_path"): f.Arguments})
	if err != nil {
		panic(err) // text always marshals
	}
	return string(b)
}

func (f *explain) ready() error {
	for _, file := range f.Filter {
		rules, err := tools.ProfileFile(file)
		if err != nil {
			return err
		}
		f.filters = append(f.filters, rules)
	}
	return nil
}

func (f explain) request() proto.Message {
	q := &toolsv1.ExplainCallRequest{
		Name: "profiles/" + bare(f.Profile), Tool: f.Tool, ArgumentsJson: f.arguments(), Mode: modeOf(f.Mode), Filters: f.filters,
	}
	if f.Session != "" {
		q.Session = sessionName(f.Session)
	}
	return q
}

func (f explain) show(s stdio, e *toolsv1.ExplainCallResponse) error {
	return printExplanation(s.out, f.Profile, e)
}

func decisionWord(k toolsv1.CallDecisionKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "CALL_DECISION_KIND_"))
}

func printExplanation(w io.Writer, profile string, e *toolsv1.ExplainCallResponse) error {
	decision := decisionWord(e.GetDecision())
	if e.GetInterrupt() {
		decision += ", and the turn ends"
	}
	rows := [][]string{{"decision", decision}, {"why", e.GetRule()}}
	for _, l := range e.GetLayers() {
		name := l.GetLayer()
		if name == "profile" {
			name += " " + bare(profile)
		}
		rows = append(rows, []string{name, decisionWord(l.GetDecision()) + ": " + l.GetRule()})
	}
	if e.GetRemedy() != "" {
		rows = append(rows, []string{"remedy", e.GetRemedy()})
	}
	for _, rule := range e.GetSuggestedRules() {
		rows = append(rows, []string{"rule", rule})
	}
	for _, g := range e.GetGrants() {
		rows = append(rows, []string{"grant", bare(g.GetName()) + " " + g.GetRule()})
	}
	return whole(w, rows)
}

type listGrants struct {
	Session string `placeholder:"ID" help:"Only those of this session."`
	jsonList
}

func (f listGrants) request() proto.Message {
	q := &toolsv1.ListGrantsRequest{}
	if f.Session != "" {
		q.Session = sessionName(f.Session)
	}
	return q
}

func (listGrants) row(g *toolsv1.Grant) [][]string {
	return [][]string{
		{"GRANT", bare(g.GetName())}, {"USER", bare(g.GetUser())}, {"HOLDS IN", cmp.Or(g.GetSession(), "all sessions")}, {"PROFILE", bare(g.GetProfile())},
		{"RULE", g.GetRule()}, {"GIVEN BY", g.GetApprover()}, {"GIVEN", stamp(g.GetCreateTime())},
	}
}

type revokeGrant struct {
	Grant string `arg:"" help:"The grant."`
	once
}

func (f revokeGrant) request() proto.Message {
	return &toolsv1.DeleteGrantRequest{Name: "grants/" + bare(f.Grant)}
}

func (f revokeGrant) done() string { return "revoked " + bare(f.Grant) }

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

func (f aProfile) request() proto.Message { return &toolsv1.GetProfileRequest{Name: f.name()} }

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

func (f deleteProfile) request() proto.Message { return &toolsv1.DeleteProfileRequest{Name: f.name()} }

func (f deleteProfile) done() string { return "deleted " + bare(f.name()) }
