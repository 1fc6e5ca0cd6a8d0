package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// sessionFilter selects sessions.
type sessionFilter struct {
	Agent    string   `help:"Only sessions of this agent."`
	Label    []string `placeholder:"NAME=VALUE" sep:"none" help:"Only sessions with this label; may be repeated."`
	State    string   `default:"any" enum:"any,idle,running,waiting" help:"Only sessions in this state: ${enum}."`
	Key      string   `help:"Only the session with this key."`
	Archived bool     `help:"List archived sessions instead of the others."`
	Oldest   bool     `help:"List the oldest session first."`
}

func (f sessionFilter) request(size int32, token string) *sessionv1.ListSessionsRequest {
	return &sessionv1.ListSessionsRequest{
		PageSize: size, PageToken: token, Agent: f.Agent, Labels: f.Label, Key: f.Key, Archived: f.Archived, OldestFirst: f.Oldest,
		State: sessionv1.SessionState(sessionv1.SessionState_value["SESSION_STATE_"+strings.ToUpper(f.State)]),
	}
}

// updateSessionCommand changes what is kept with a session.
type updateSessionCommand struct {
	ID          string            `arg:"" help:"The session."`
	Title       *string           `help:"The new title."`
	Label       map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A label to set; may be repeated."`
	RemoveLabel []string          `placeholder:"NAME" help:"A label to remove; may be repeated."`
	JSON        bool              `name:"json" help:"Print the session as JSON."`
	target
}

// Run changes a session.
func (c updateSessionCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.UpdateSessionRequest{Name: sessionName(c.ID), Title: c.Title, Labels: c.Label, RemoveLabels: c.RemoveLabel, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.UpdateSessionResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.sessions.UpdateSession(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		return printSession(s.out, resp.GetSession(), c.JSON)
	})
}

// archiveSessionCommand archives a session.
type archiveSessionCommand struct {
	ID   string `arg:"" help:"The session."`
	Undo bool   `help:"Bring the session back."`
	JSON bool   `name:"json" help:"Print the session as JSON."`
	target
}

// Run archives a session.
func (c archiveSessionCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.ArchiveSessionRequest{Name: sessionName(c.ID), Undo: c.Undo, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.ArchiveSessionResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.sessions.ArchiveSession(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		return printSession(s.out, resp.GetSession(), c.JSON)
	})
}

// printSession shows what is kept with a session.
func printSession(w io.Writer, x *sessionv1.Session, json bool) error {
	if json {
		return printJSON(w, []*sessionv1.Session{x})
	}
	rows := [][]string{{"session", bare(x.GetName())}, {"agent", bare(x.GetAgent())}, {"title", x.GetTitle()}, {"archived", stamp(x.GetArchiveTime())}}
	for _, name := range slices.Sorted(maps.Keys(x.GetLabels())) {
		rows = append(rows, []string{"label", name + "=" + x.GetLabels()[name]})
	}
	return columns(w, rows)
}
