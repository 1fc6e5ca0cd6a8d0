package integration

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

// TestTenSubagentsEndWithTheirTurnWhereverReplicasDie has one turn give work to ten
// subagents on two levels, with two replicas, of which a seed kills, freezes and holds up
// some at its writes. Some seeds interrupt the turn, some give it few tokens. On SQLite the
// clock is simulated.
func TestTenSubagentsEndWithTheirTurnWhereverReplicasDie(t *testing.T) {
	seeds, every := 240, 24
	if sampled() {
		seeds, every = 24, 12
	}
	t.Run("SQLite", func(t *testing.T) {
		for _, seed := range prove.Sample(seedsBelow(seeds), every) {
			synctest.Test(t, func(t *testing.T) { newHousehold(t, seed, "").live(t) })
		}
	})
	t.Run("Postgres", func(t *testing.T) {
		url := pgtest.New(t)
		for _, seed := range prove.Sample(seedsBelow(seeds/8), every/2+3) {
			// Of one household nothing may live on: it would claim the sessions of the next.
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { newHousehold(t, seed, url).live(t) })
		}
	})
}

func seedsBelow(n int) (all []uint64) {
	for i := range n {
		all = append(all, uint64(i))
	}
	return all
}

// household is one database and its replicas, of which two work and the others have died.
type household struct {
	seed    uint64
	random  *rand.Rand
	first   *fixture // only set up: it does not run
	config  session.Config
	tokens  int64
	stopped bool // the turn was interrupted
	struck  []string

	mu     sync.Mutex
	opened *faulty.Store // of the replica that starts
	alive  []*member
}

// member is a replica.
type member struct {
	*fixture
	store *faulty.Store
}

func newHousehold(t *testing.T, seed uint64, url string) *household {
	t.Helper()
	h := &household{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), tokens: 1_000_000}
	if seed%3 == 1 {
		h.tokens = 9_000
	}
	f := prepare(t, lead, withSubagents, func(c *session.Config) {
		c.MaxSessions = 3 // of each depth, so that both replicas have some
		if url == "" {
			c.PollInterval, c.LeaseTTL, c.StreamProgressInterval = time.Second, 8*time.Second, 10*time.Second
		} else {
			c.DatabaseURL = config.Secret(url)
		}
	})
	wrap := func(s store.Store) store.Store {
		h.opened = faulty.New(s)
		return h.opened
	}
	f.wrap(t, wrap)
	if url == "" {
		path := filepath.Join(memoryDir(t), "session.db")
		migrated.Copy(t, path)
		db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		f.store = func(context.Context) (store.Store, error) { return wrap(staysOpen{db}), nil }
	}
	h.first, h.config = f, f.config
	h.join(t)
	h.join(t)
	return h
}

// join starts a replica.
func (h *household) join(t *testing.T) {
	m := &member{fixture: h.first.another()}
	m.run(t)
	t.Cleanup(func() { m.stop() })
	h.mu.Lock()
	defer h.mu.Unlock()
	m.store = h.opened
	h.alive = append(h.alive, m)
}

// pick returns one of the replicas that work.
func (h *household) pick(n int) *member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alive[n%len(h.alive)]
}

// leave takes a replica off those that work.
func (h *household) leave(m *member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = slices.DeleteFunc(h.alive, func(other *member) bool { return other == m })
}

// ask asks the replicas in turn until one answers.
func (h *household) ask(ctx context.Context, what string, do func(context.Context, *member) error) error {
	for n := 0; ; n++ {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := do(try, h.pick(n))
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// live runs the turn, and checks what is left of it.
func (h *household) live(t *testing.T) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("seed %d, tokens %d: %v", h.seed, h.tokens, h.struck)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := h.pick(0).session(ctx, t)
	created, err := h.pick(0).CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "ten", Limits: &sessionv1.TurnLimits{MaxTokens: h.tokens}})
	if err != nil {
		t.Fatal(err)
	}
	striking, calm := context.WithCancel(ctx)
	var blows sync.WaitGroup
	blows.Go(func() {
		for n := range 1 + h.random.IntN(3) {
			if striking.Err() != nil || !h.strike(striking, t, s, n) {
				return
			}
		}
	})
	var turn *sessionv1.Turn
	for turn.GetEndTime() == nil && ctx.Err() == nil {
		if err := h.ask(ctx, "read the turn", func(ctx context.Context, m *member) error {
			got, err := m.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: created.Turn.Name})
			if err == nil {
				turn = got.Turn
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		<-time.After(h.config.PollInterval)
	}
	calm()
	blows.Wait()
	if turn.GetEndTime() == nil {
		t.Fatalf("the turn has not ended: %v", turn)
	}
	h.alive = nil
	h.join(t) // the others may still be struck
	h.examine(t, s, turn)
}

// strike does something to a replica at one of its writes, and reports whether the write came.
func (h *household) strike(ctx context.Context, t *testing.T, s string, n int) bool {
	m, f := h.pick(h.random.IntN(2)), []fate{gone, gone, cutOff, frozen, held, "interrupt"}[h.random.IntN(6)]
	method := []faulty.Method{faulty.Commit, faulty.Commit, faulty.Commit, faulty.CreateSession, faulty.Claim, faulty.ListEvents, faulty.Submit}[h.random.IntN(7)]
	call, when := 1+h.random.IntN(3), []faulty.When{faulty.Before, faulty.After}[h.random.IntN(2)]
	if method == faulty.Commit || method == faulty.ListEvents {
		call = 1 + h.random.IntN(25/(n+1))
	}
	var pause *faulty.Pause
	var reached <-chan struct{}
	switch f {
	case gone, cutOff:
		reached = m.store.Kill(method, call, when)
	case frozen:
		pause = m.store.Freeze(method, call, when)
	default:
		pause = m.store.Hold(method, call, when)
	}
	if pause != nil {
		defer pause.Resume()
		reached = pause.Reached
	}
	select {
	case <-reached:
	case <-ctx.Done():
		return false
	}
	h.struck = append(h.struck, fmt.Sprintf("%s at %s %d, %d", f, method, call, when))
	switch f {
	case gone, cutOff, frozen:
		h.leave(m)
		if f == gone {
			m.stop()
		}
		h.join(t) //nolint:contextcheck // a replica outlives the blow
	case held:
	default:
		h.stopped = true
		if err := h.ask(ctx, "interrupt", func(ctx context.Context, m *member) error {
			_, err := m.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s, RequestId: "stop"})
			return err
		}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	if f == frozen || f == held {
		<-time.After(h.config.LeaseTTL + 2*h.config.PollInterval)
	}
	return true
}

// examine checks what is left when the turn has ended.
func (h *household) examine(t *testing.T, s string, turn *sessionv1.Turn) {
	t.Helper()
	ctx, f := t.Context(), h.pick(0)
	complete := sessionv1.TurnState_TURN_STATE_COMPLETE
	switch {
	case turn.State == complete, turn.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED && h.stopped:
	case turn.State == sessionv1.TurnState_TURN_STATE_PARTIAL && h.tokens == 9_000:
	default:
		t.Errorf("the turn ended %v: %v", turn.State, turn.Error)
	}
	if err := ends(f.log(ctx, t, s), turn.State); err != nil {
		t.Error(err)
	}
	if used := tokensOf(turn.Usage) + tokensOf(turn.SubagentUsage); used > h.tokens {
		t.Errorf("the turn and its subagents used %d tokens", used)
	}
	family := h.descend(t, s, turn)
	h.first.peers.mu.Lock()
	defer h.first.peers.mu.Unlock()
	for id, n := range h.first.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", id, n)
		}
	}
	if n := len(h.first.peers.executed); turn.State == complete && h.tokens > 9_000 && !h.stopped && (family != 10 || n != 20) {
		t.Errorf("%d subagents worked, and %d calls were executed", family, n)
	}
}

func tokensOf(u *sessionv1.Usage) int64 { return u.GetInputTokens() + u.GetOutputTokens() }

// descend checks the subagents below a turn, and counts them.
func (h *household) descend(t *testing.T, s string, turn *sessionv1.Turn) (n int) {
	t.Helper()
	ctx, f := t.Context(), h.pick(0)
	log, used := f.log(ctx, t, s), int64(0)
	children := f.children(ctx, t, s)
	calls := map[string]bool{}
	for _, c := range children {
		calls[c.ParentCall.CallId] = true
		turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: c.Name})
		if err != nil || len(turns.Turns) != 1 {
			t.Fatalf("subagent %s has the turns %v (%v)", c.Name, turns, err)
		}
		end := turns.Turns[0]
		if end.EndTime == nil || end.EndTime.AsTime().After(turn.EndTime.AsTime()) {
			t.Errorf("the turn of subagent %s ended at %v, that of its parent at %v", c.Name, end.EndTime.AsTime(), turn.EndTime.AsTime())
		}
		child := f.log(ctx, t, c.Name)
		if err := ends(child, end.State); err != nil {
			t.Errorf("subagent %s: %v", c.Name, err)
		}
		if err := isMirrored(log, child, c.ParentCall.CallId); err != nil {
			t.Errorf("subagent %s: %v", c.Name, err)
		}
		used += tokensOf(end.Usage) + tokensOf(end.SubagentUsage)
		n += 1 + h.descend(t, c.Name, end)
	}
	if len(calls) != len(children) {
		t.Errorf("%d subagents work for %d calls", len(children), len(calls))
	}
	if got := tokensOf(turn.SubagentUsage); got != used {
		t.Errorf("%s counts %d tokens of its subagents, which used %d", turn.Name, got, used)
	}
	return n
}

// isMirrored checks that a parent's log has all events of a subagent's turn, once and in order.
func isMirrored(log, child []*sessionv1.Event, call string) error {
	var got []*sessionv1.Event
	began, ended := 0, 0
	for _, e := range log {
		switch {
		case e.GetSubagentStarted().GetCallId() == call && len(got)+ended == 0:
			began++
		case e.GetSubagentEvent().GetCallId() == call && ended == 0:
			got = append(got, e.GetSubagentEvent().Event)
		case e.GetSubagentFinished().GetCallId() == call:
			ended++
		}
	}
	if began != 1 || ended != 1 {
		return fmt.Errorf("it began %d times and ended %d times: %v", began, ended, told(log)[call])
	}
	last := int64(0)
	for _, e := range got {
		if e.FirstSeq <= last {
			return fmt.Errorf("event %d is copied twice: %v", e.FirstSeq, told(log)[call])
		}
		last = e.Seq
	}
	if got, want := flat(got), flat(child); !slices.Equal(got, want) {
		return fmt.Errorf("the parent has\n%q\nwant\n%q", got, want)
	}
	return nil
}

// flat describes the events of a subagent that are copied, text as a whole.
func flat(events []*sessionv1.Event) (all []string) {
	for _, e := range events {
		name, text := sessionv1.EventName(e), e.GetTextDelta().GetText()
		switch {
		case e.GetSessionCreated() != nil || e.GetToolCallArgumentsDelta() != nil || e.GetToolCallOutputDelta() != nil:
		case text != "" && len(all) > 0 && all[len(all)-1] != "" && all[len(all)-1][0] == '=':
			all[len(all)-1] += text
		case text != "":
			all = append(all, "="+text)
		default:
			all = append(all, fmt.Sprintf("%s %d", name, e.Seq))
		}
	}
	return all
}
