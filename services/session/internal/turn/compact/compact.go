// Package compact shortens what a session's model sees when the conversation has outgrown the
// model's context, or when a person requests it.
//
// The model writes a summary of the older messages. If there is no summary to be had, the older
// messages are cut. The conversation itself stays as it is.
package compact

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

// Config configures when and how the model's view is shortened.
type Config struct {
	// At is the part of a model's context, in percent, from which on the view is
	// shortened before a step. Zero: only when the provider reports that the
	// context is full.
	At int
	// SummaryTokens bounds a summary.
	SummaryTokens int64
}

// keepPart is the part of the usable context that stays unchanged beside a summary.
const keepPart = 4

// Triggers and methods, as session.compacted reports them.
const (
	triggerAutomatic = "automatic"
	triggerRequested = "requested"
	methodSummary    = "summary"
	methodCut        = "cut"
)

// Compactor shortens the view of one session.
type Compactor struct {
	Config
	telemetry telemetry.Telemetry
	spend     *spend.Spend
	workspace *workspace.Workspace
	hook      *Hook

	counted state.Counted   // by the provider, last
	pending []store.Command // requests to compact
}

// New returns the compactor of a session that has just been loaded.
func New(c Config, t telemetry.Telemetry, s *spend.Spend, w *workspace.Workspace, h *Hook) *Compactor {
	return &Compactor{Config: c, telemetry: t, spend: s, workspace: w, hook: h}
}

// shortening is a compaction in progress.
type shortening struct {
	trigger      string
	instructions string
	callID       string  // of the hook
	consume      []int64 // the requests that it answers
	keep         int64   // tokens that stay beside a summary
	target       int64   // tokens of the view afterwards
	before       int64   // tokens of the view
	cut          bool    // without a summary
	user         string  // the user of the last request, if there was one
}

func (s shortening) summary() spend.Summary { return spend.Summary{CallID: s.callID, User: s.user} }

// Count stores the provider's count for the answer that was just added.
func (c *Compactor) Count(t *state.Turn, m *sessionv1.Message, u *sessionv1.Usage) {
	if n := state.PromptTokens(u); n > 0 {
		c.counted = state.Counted{Message: m.Name, Tokens: n + u.GetOutputTokens()}
		t.Run.Counted = c.counted
	}
}

// Forget drops the provider's count, because the conversation was cut.
func (c *Compactor) Forget() { c.counted = state.Counted{} }

// viewTokens returns the tokens of the view: the provider's last count plus an estimate of the
// messages since, or an estimate of all messages plus overhead.
func (c *Compactor) viewTokens(sc state.Scope, overhead int64) int64 {
	at := c.counted
	if sc.Active != nil && at.Message == "" {
		at = sc.Active.Run.Counted
	}
	for i := len(sc.Path) - 1; i >= 0 && at.Message != "" && sc.Path[i].Compaction == nil; i-- {
		if sc.Path[i].Name == at.Message {
			return at.Tokens + modelview.Tokens(sc.Path[i+1:])
		}
	}
	return overhead + modelview.Tokens(sc.View(sc.Path))
}

// room returns how many tokens of the model's context the view may have; 0: not known.
func (c *Compactor) room(r state.Resolved) int64 {
	if r.ContextTokens == 0 || c.At == 0 {
		return 0
	}
	return min(r.ContextTokens*int64(c.At)/100, fits(r))
}

// fits returns how many tokens the view may have beside the model's longest answer.
func fits(r state.Resolved) int64 {
	return r.ContextTokens - min(r.MaxOutputTokens, r.ContextTokens/2)
}

// IfFull shortens the view before a step when it has outgrown its part of the context. A view
// that cannot be shortened enough is left to the provider.
func (c *Compactor) IfFull(sc state.Scope, r state.Resolved, tools []model.Tool) (state.Outcome, error) {
	room := c.room(r)
	if room == 0 {
		return state.Outcome{}, nil
	}
	overhead := modelview.TextTokens(sc.SystemPrompt())
	for _, t := range tools {
		overhead += modelview.TextTokens(t.Name) + modelview.TextTokens(t.Description) + modelview.TextTokens(string(t.InputSchema))
	}
	before := c.viewTokens(sc, overhead)
	if before <= room {
		return state.Outcome{}, nil
	}
	target := max(room-overhead, room/4)
	older, _ := modelview.Split(sc.Path, sc.ModelName(), target/keepPart)
	cut := modelview.Tokens(older) < target/10 // too little to summarize
	if cut && before <= fits(r) {
		return state.Outcome{}, nil
	}
	_, out, err := c.shorten(sc, r, shortening{
		trigger: triggerAutomatic, callID: automaticCall(sc.Active), keep: target / keepPart, target: target, before: before, cut: cut,
	})
	return out, err
}

// Halve shortens the view to half after the provider refused it; the first time in a step with a
// summary. It reports whether the request can be tried again.
func (c *Compactor) Halve(sc state.Scope, r state.Resolved) (bool, state.Outcome, error) {
	size := modelview.Tokens(sc.View(sc.Path))
	sc.Active.Run.Squeezed++
	return c.shorten(sc, r, shortening{
		trigger: triggerAutomatic, callID: automaticCall(sc.Active), keep: size / 2 / keepPart, target: size / 2,
		before: c.viewTokens(sc, 0), cut: sc.Active.Run.Squeezed > 1,
	})
}

// Request takes a request to compact. It is done between two steps, or when nothing runs.
func (c *Compactor) Request(cmd store.Command) { c.pending = append(c.pending, cmd) }

// Requested reports whether there are requests to compact.
func (c *Compactor) Requested() bool { return len(c.pending) > 0 }

// RunRequested handles all requests to compact at once: between two steps, or while no turn runs.
func (c *Compactor) RunRequested(sc state.Scope) (state.Outcome, error) {
	if len(c.pending) == 0 {
		return state.Outcome{}, nil
	}
	asked := c.pending
	c.pending = nil
	if err := sc.LoadPath(sc.Outlasting()); err != nil {
		return state.Outcome{}, err
	}
	s := shortening{trigger: triggerRequested, callID: requestedCall(sc, asked[0].ID), before: c.viewTokens(sc, modelview.TextTokens(sc.SystemPrompt()))}
	for _, cmd := range asked {
		r := &sessionv1.CompactSessionRequest{}
		if err := proto.Unmarshal(cmd.Body, r); err != nil {
			return state.Outcome{}, fmt.Errorf("read a request to compact: %w", err)
		}
		s.consume = append(s.consume, cmd.ID)
		s.instructions = strings.TrimSpace(s.instructions + "\n" + r.Instructions)
		s.user = cmd.User
	}
	s.target = modelview.Tokens(sc.View(sc.Path)) / 2
	resolved, err := sc.ResolveModel()
	if err != nil {
		s.cut = true
	}
	done, out, err := c.shorten(sc.As(s.user), resolved, s)
	switch {
	case err != nil || done:
		return out, err
	case out.Stopped:
		c.pending = asked // the turn stops first
		return out, nil
	case out.End != nil:
		c.notCompacted(sc, &out.End.Write, s)
		return out, nil
	case out.Wait != nil:
		c.notCompacted(sc, &out.Wait.Write, s)
		return out, nil
	default:
		var write store.Write
		c.notCompacted(sc, &write, s)
		return out, sc.Append(write)
	}
}

// RunRequestedInTurn is RunRequested during a turn. The hook runs with the variables of the
// requesting user, so the workspace gets the turn's variables only after the hook has run.
func (c *Compactor) RunRequestedInTurn(sc state.Scope) (state.Outcome, error) {
	if sc.Spec.PreCompaction == "" || c.pending[len(c.pending)-1].User == sc.Active.Run.User {
		return c.RunRequested(sc)
	}
	return c.workspace.Lend(sc, func() (state.Outcome, error) { return c.RunRequested(sc) })
}

// notCompacted tells the requesters, in a write, that the compaction failed.
func (c *Compactor) notCompacted(sc state.Scope, write *store.Write, s shortening) {
	e := state.Warning("NOT_COMPACTED", "The model's view was not shortened: it has too little to shorten, or no budget is left for a summary.")
	if sc.Active != nil {
		e = sc.Event(0, e)
	}
	write.Consume, write.Events = append(write.Consume, s.consume...), append(write.Events, e)
	c.spend.SettleSummary(write, s.summary(), nil)
}

// automaticCall returns the id of the hook's call: fixed by the turn and the step, so that a
// successor gets the existing result.
func automaticCall(t *state.Turn) string { return fmt.Sprintf("%s.%d.compact", t.ID, t.Step()) }

// requestedCall is automaticCall for a requested compaction: fixed by the first of the requests
// that it answers.
func requestedCall(sc state.Scope, command int64) string {
	return fmt.Sprintf("compact.%s.%d", sc.Lease.Session, command)
}
