package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/tools"
)

// permissionsCommand explains decisions, and shows what was allowed for longer.
type permissionsCommand struct {
	Explain explainCommand     `cmd:"" help:"Say what a profile decides on a call, and why. Nothing is run."`
	Mode    modeCommand        `cmd:"" help:"Change the permission mode of the turn that runs in a session."`
	Grants  listGrantsCommand  `cmd:"" help:"List what was allowed for longer than one call, the newest first."`
	Revoke  revokeGrantCommand `cmd:"" help:"Take back what was allowed: the next call is asked about again."`
}

// modeCommand changes the mode of a running turn.
type modeCommand struct {
	Session string `arg:"" help:"The session."`
	Mode    string `arg:"" enum:"default,accept-edits,plan,bypass" help:"The mode: ${enum}."`
	target
}

// Run changes the mode.
func (c modeCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.SetPermissionModeRequest{Name: sessionName(c.Session), PermissionMode: modeOf(c.Mode), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return terminal.Explained(retry(ctx, func() error {
			resp, err := b.sessions.SetPermissionMode(ctx, r)
			if err == nil {
				_, _ = fmt.Fprintf(s.out, "%s goes on in the mode %s\n", resp.GetTurn(), c.Mode)
			}
			return err
		}))
	})
}

// explainCommand explains a decision.
type explainCommand struct {
	Tool      string   `arg:"" help:"The tool, such as Bash."`
	Arguments string   `arg:"" optional:"" help:"The arguments as JSON; for Bash the command, for a tool with a path the path, for Task the subagent, for Skill the skill."`
	Profile   string   `default:"full" placeholder:"NAME" help:"The profile that decides: ${default} by default."`
	Mode      string   `default:"default" enum:"default,accept-edits,plan,bypass" help:"The mode: ${enum}."`
	Filter    []string `placeholder:"FILE" help:"A YAML file with rules that narrow the profile; may be repeated."`
	Session   string   `placeholder:"ID" help:"The session whose grants count."`
	JSON      bool     `name:"json" help:"Print the explanation as JSON."`
	target
}

// arguments returns the arguments as JSON.
func (c explainCommand) arguments() string {
	if c.Arguments == "" || strings.HasPrefix(strings.TrimSpace(c.Arguments), "{") {
		return c.Arguments
	}
	key := map[string]string{"Bash": "command", "Grep": "path", "Glob": "path", "LS": "path", "Task": "subagent_type", "Skill": "skill"}[c.Tool]
	b, err := json.Marshal(map[string]string{cmp.Or(key, "file_path"): c.Arguments})
	if err != nil {
		panic(err) // text always marshals
	}
	return string(b)
}

func (c explainCommand) request() (*toolsv1.ExplainCallRequest, error) {
	q := &toolsv1.ExplainCallRequest{
		Name: "profiles/" + bare(c.Profile), Tool: c.Tool, ArgumentsJson: c.arguments(),
		Mode: modeOf(c.Mode),
	}
	if c.Session != "" {
		q.Session = sessionName(c.Session)
	}
	for _, file := range c.Filter {
		rules, err := tools.ProfileFile(file)
		if err != nil {
			return nil, err
		}
		q.Filters = append(q.Filters, rules)
	}
	return q, nil
}

// Run explains a decision.
func (c explainCommand) Run(ctx context.Context, s stdio) error {
	q, err := c.request()
	if err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.profiles.ExplainCall(ctx, q)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []*toolsv1.ExplainCallResponse{resp})
		}
		return printExplanation(s.out, c.Profile, resp)
	})
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

// listGrantsCommand lists grants.
type listGrantsCommand struct {
	Session string `placeholder:"ID" help:"Only those of this session."`
	JSON    bool   `name:"json" help:"Print one JSON grant per line."`
	target
}

// Run lists grants.
func (c listGrantsCommand) Run(ctx context.Context, s stdio) error {
	q := &toolsv1.ListGrantsRequest{}
	if c.Session != "" {
		q.Session = sessionName(c.Session)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*toolsv1.Grant
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			q.PageSize, q.PageToken = size, token
			resp, err := b.grants.ListGrants(ctx, q)
			all = append(all, resp.GetGrants()...)
			return len(resp.GetGrants()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"GRANT", "USER", "HOLDS IN", "PROFILE", "RULE", "GIVEN BY", "GIVEN"}}
		for _, g := range all {
			rows = append(rows, []string{
				bare(g.GetName()), bare(g.GetUser()), cmp.Or(g.GetSession(), "all sessions"), bare(g.GetProfile()), g.GetRule(), g.GetApprover(), stamp(g.GetCreateTime()),
			})
		}
		return columns(s.out, rows)
	})
}

// revokeGrantCommand deletes a grant.
type revokeGrantCommand struct {
	Grant string `arg:"" help:"The grant."`
	target
}

// Run deletes a grant.
func (c revokeGrantCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		_, err := b.grants.DeleteGrant(ctx, &toolsv1.DeleteGrantRequest{Name: "grants/" + bare(c.Grant), RequestId: id.New()})
		if err == nil {
			_, err = fmt.Fprintln(s.out, "revoked", bare(c.Grant))
		}
		return terminal.Explained(err)
	})
}
