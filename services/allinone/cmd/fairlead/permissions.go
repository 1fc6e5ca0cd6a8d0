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
