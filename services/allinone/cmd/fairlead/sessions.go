package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	client "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// sessionsCommand looks at sessions, and does what concerns a whole one.
type sessionsCommand struct {
	List   lists[listSessions, *sessionv1.Session] `cmd:"" help:"List sessions, the newest first."`
	Show   showCommand                             `cmd:"" help:"Show a session and its turns."`
	Events eventsCommand                           `cmd:"" help:"Show a session's events."`

	Export  exportCommand                                   `cmd:"" help:"Write a session to a file."`
	Import  importCommand                                   `cmd:"" help:"Make a session from an exported file."`
	Fork    shows[fork, *sessionv1.Session]                 `cmd:"" set:"one=new session" help:"Continue a session in a new one."`
	Rewind  shows[rewind, *sessionv1.RewindSessionResponse] `cmd:"" help:"Go back to a checkpoint, in the conversation and in the files."`
	Compact does[compact]                                   `cmd:"" help:"Shorten the conversation for the model."`
	Search  lists[search, *sessionv1.FoundMessage]          `cmd:"" help:"Find messages by their words."`

	Update  shows[updateSession, *sessionv1.Session]  `cmd:"" help:"Change a session's title and labels."`
	Archive shows[archiveSession, *sessionv1.Session] `cmd:"" help:"Archive a session: it can be read, but takes no messages."`
}

type listSessions struct {
	Limit int `default:"50" help:"The most sessions."`
	jsonList
	Agent    string   `help:"Only sessions of this agent."`
	Label    []string `placeholder:"NAME=VALUE" sep:"none" help:"Only sessions with this label; may be repeated."`
	State    string   `default:"any" enum:"any,idle,running,waiting" help:"Only sessions in this state: ${enum}."`
	Key      string   `help:"Only the session with this key."`
	Archived bool     `help:"List archived sessions instead of the others."`
	Oldest   bool     `help:"List the oldest session first."`
}

func (f listSessions) limit() int { return f.Limit }

func (f listSessions) ready() error { return positive(f.Limit) }

func (f listSessions) request() proto.Message {
	return &sessionv1.ListSessionsRequest{
		Agent: f.Agent, Labels: f.Label, Key: f.Key, Archived: f.Archived, OldestFirst: f.Oldest,
		State: sessionv1.SessionState(sessionv1.SessionState_value["SESSION_STATE_"+strings.ToUpper(f.State)]),
	}
}

func (listSessions) row(x *sessionv1.Session) [][]string {
	state := "idle"
	if x.GetActiveTurn() != "" {
		state = "active"
	}
	return [][]string{
		{"SESSION", bare(x.GetName())}, {"AGENT", bare(x.GetAgent())}, {"UPDATED", stamp(x.GetUpdateTime())}, {"TURNS", fmt.Sprint(x.GetFinishedTurns())},
		{"STATE", state}, {"COST", terminal.Cost(x.GetUsage())}, {"TITLE", x.GetTitle()},
	}
}

// showCommand shows a session.
type showCommand struct {
	ID   string `arg:"" help:"The session."`
	JSON bool   `name:"json" help:"Print the session and then its turns, one JSON object per line."`
	target
}

// Run shows a session.
func (c showCommand) Run(ctx context.Context, s stdio) error {
	name := sessionName(c.ID)
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: name})
		if err != nil {
			return terminal.Explained(err)
		}
		turns, err := all[*sessionv1.Turn](ctx, b, &sessionv1.ListTurnsRequest{Parent: name}, 0)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			if err := printJSON(s.out, []*sessionv1.Session{resp.GetSession()}); err != nil {
				return err
			}
			return printJSON(s.out, turns)
		}
		return showSession(s.out, resp.GetSession(), turns)
	})
}

func showSession(w io.Writer, x *sessionv1.Session, turns []*sessionv1.Turn) error {
	rows := [][]string{
		{"session", bare(x.GetName())}, {"agent", bare(x.GetAgent())}, {"title", x.GetTitle()},
		{"created", stamp(x.GetCreateTime())}, {"updated", stamp(x.GetUpdateTime())}, {"last event", strconv.FormatInt(x.GetLastSeq(), 10)},
		{"used", terminal.Used(x.GetUsage())},
	}
	if x.GetActiveTurn() != "" {
		rows = append(rows, []string{"active turn", bare(x.GetActiveTurn())})
	}
	if err := columns(w, rows); err != nil || len(turns) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return columns(w, rowsOf(turns, func(t *sessionv1.Turn) [][]string {
		said := t.GetFinalText()
		if e := t.GetError(); e != nil {
			said = e.GetReason() + ": " + e.GetMessage()
		}
		return [][]string{
			{"TURN", bare(t.GetName())}, {"STATE", terminal.State(t.GetState())}, {"CREATED", stamp(t.GetCreateTime())}, {"TIME", elapsed(t)},
			{"STEPS", fmt.Sprint(t.GetSteps())}, {"USED", terminal.Used(t.GetUsage())}, {"SAID", said},
		}
	}))
}

// elapsed returns how long a turn took, or takes.
func elapsed(t *sessionv1.Turn) string {
	if t.GetStartTime() == nil || t.GetEndTime() == nil {
		return "-"
	}
	return terminal.Duration(t.GetEndTime().AsTime().Sub(t.GetStartTime().AsTime()))
}

// eventsCommand shows a session's events.
type eventsCommand struct {
	ID       string `arg:"" help:"The session."`
	Follow   bool   `help:"Show new events until Ctrl-C."`
	AfterSeq int64  `placeholder:"N" help:"Only events after this sequence number."`
	Limit    int    `placeholder:"N" help:"The most events; 0 means all."`
	JSON     bool   `name:"json" help:"Print one JSON event per line."`
	target
}

// Run shows events.
func (c eventsCommand) Run(ctx context.Context, s stdio) error {
	if c.Limit < 0 || c.AfterSeq < 0 {
		return usage("--limit and --after-seq cannot be negative")
	}
	var v view = &eventLines{w: s.out}
	if c.JSON {
		v = &jsonLines{w: s.out}
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		if c.Follow {
			return terminal.Explained(c.follow(ctx, s, b, v))
		}
		return terminal.Explained(c.page(ctx, b, v))
	})
}

// page shows what there is.
func (c eventsCommand) page(ctx context.Context, b *backend, v view) error {
	return pages(ctx, c.Limit, func(size int32, token string) (int, string, error) {
		resp, err := b.sessions.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: sessionName(c.ID), AfterSeq: c.AfterSeq, PageSize: size, PageToken: token})
		for _, e := range resp.GetEvents() {
			v.Event(e)
		}
		if err == nil {
			err = v.Err()
		}
		return len(resp.GetEvents()), resp.GetNextPageToken(), err
	})
}

// follow shows what there is and what comes.
func (c eventsCommand) follow(ctx context.Context, s stdio, b *backend, v view) error {
	f := client.StreamEvents(ctx, b.sessions, sessionName(c.ID), c.AfterSeq, client.Options{
		Backoff: client.DefaultBackoff(),
		Lost: func(err error) {
			_, _ = fmt.Fprintf(s.err, "the connection was lost, trying again: %s\n", terminal.Explain(err))
		},
	})
	defer f.Close()
	shown := 0
	for e := range f.Events() {
		v.Event(e)
		if err := v.Err(); err != nil {
			return err
		}
		if shown++; c.Limit > 0 && shown >= c.Limit {
			return nil
		}
	}
	if ctx.Err() != nil { // Ctrl-C is how following ends
		return nil
	}
	return f.Err()
}

// eventLines shows events one a line, in columns.
type eventLines struct {
	w   io.Writer
	err error
}

// Event shows an event.
func (l *eventLines) Event(e *sessionv1.Event) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, "%8d  %s  %-24s %s\n", e.GetSeq(), e.GetTime().AsTime().Local().Format("15:04:05.000"),
			terminal.Line(sessionv1.EventName(e), 24), strings.TrimSpace(terminal.Summary(e)))
	}
}

// Err returns the first error.
func (l *eventLines) Err() error { return l.err }

// aSession is a command that shows what is kept with a session.
type aSession struct {
	ID string `arg:"" help:"The session."`
	jsonOne
}

func (aSession) show(s stdio, x *sessionv1.Session) error {
	rows := [][]string{{"session", bare(x.GetName())}, {"agent", bare(x.GetAgent())}, {"title", x.GetTitle()}, {"archived", stamp(x.GetArchiveTime())}}
	for _, name := range slices.Sorted(maps.Keys(x.GetLabels())) {
		rows = append(rows, []string{"label", name + "=" + x.GetLabels()[name]})
	}
	return columns(s.out, rows)
}

type updateSession struct {
	Title       *string           `help:"The new title."`
	Label       map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A label to set; may be repeated."`
	RemoveLabel []string          `placeholder:"NAME" help:"A label to remove; may be repeated."`
	aSession
}

func (f updateSession) request() proto.Message {
	return &sessionv1.UpdateSessionRequest{Name: sessionName(f.ID), Title: f.Title, Labels: f.Label, RemoveLabels: f.RemoveLabel}
}

type archiveSession struct {
	Undo bool `help:"Bring the session back."`
	aSession
}

func (f archiveSession) request() proto.Message {
	return &sessionv1.ArchiveSessionRequest{Name: sessionName(f.ID), Undo: f.Undo}
}
