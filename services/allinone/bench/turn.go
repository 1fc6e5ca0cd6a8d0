package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/sse"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

const (
	turnRounds = 50 // plain turns, one after the other
	callRounds = 10 // turns of commands
	turnCalls  = 10 // commands of such a turn
	turnsAtOne = 50 // turns at once
	// commitsAllowed is how many synced commits may lie between a request and its first text.
	commitsAllowed = 2
	atOnceGoal     = 200 * time.Millisecond
	plainCPUGoal   = 5 * time.Millisecond
	atOnceCPUGoal  = 300 * time.Millisecond
)

// quick is an answer without waits: what a turn takes then is Fairlead's.
var quick = provider.Plan{Tokens: 4}

// turnShape is a way to store turns, with what it may take.
type turnShape struct {
	name         string
	database     string
	store        []string      // the arguments with which storebench reaches a store of the same kind
	added, calls time.Duration // beside the commits of a plain turn; for a turn of commands
}

// measureTurn measures turns that wait for nothing but Fairlead.
func measureTurn(ctx context.Context, b *bench) error {
	database, err := b.database(ctx)
	if err != nil {
		return err
	}
	other, err := b.database(ctx)
	if err != nil {
		return err
	}
	for _, s := range []turnShape{
		{"all in one on SQLite", "", []string{"--data", b.data()}, 3 * time.Millisecond, 120 * time.Millisecond},
		{"all in one on Postgres", database, []string{"--database", other}, 6 * time.Millisecond, 0},
	} {
		if err := b.turnsOf(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// turnsOf measures one shape.
func (b *bench) turnsOf(ctx context.Context, s turnShape) error {
	var commit times
	if err := b.storebench(ctx, &commit, append([]string{"commit", "--count", "300"}, s.store...)...); err != nil {
		return err
	}
	one := time.Duration(commit.P50 * 1e3)
	f, err := fleet.Run(ctx, b.shape(s.database, false))
	if err != nil {
		return err
	}
	defer f.Stop()
	b.row(s.name, "one synced commit of one event: p50 %.2f ms", commit.P50/1e3)
	plain, err := b.oneByOne(ctx, f, quick, turnRounds)
	if err != nil {
		return err
	}
	b.row("  a plain turn", "until the model is asked %s, first text %s, CPU %s", plain.asked, plain.first, stat.Milliseconds(plain.cpu))
	most := commitsAllowed*one + s.added
	b.goal(plain.first.At(0.5) <= most, "first text %s; goal: %d commits + %s = %s", stat.Milliseconds(plain.first.At(0.5)), commitsAllowed, stat.Milliseconds(s.added), stat.Milliseconds(most))
	b.goal(plain.cpu <= plainCPUGoal, "CPU of a plain turn %s; goal: %s", stat.Milliseconds(plain.cpu), stat.Milliseconds(plainCPUGoal))
	asking := quick
	asking.Calls = turnCalls
	calls, err := b.oneByOne(ctx, f, asking, callRounds)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("  a turn of %d commands", turnCalls), "total %s, CPU %s", calls.total, stat.Milliseconds(calls.cpu))
	if s.calls > 0 {
		b.goal(calls.total.At(0.5) <= s.calls, "a turn of %d commands %s; goal: %s", turnCalls, stat.Milliseconds(calls.total.At(0.5)), stat.Milliseconds(s.calls))
	}
	return b.turnsAtOnce(ctx, f)
}

// taken is what turns took. cpu is Fairlead's, of one turn.
type taken struct {
	asked, first, total stat.Times
	cpu                 time.Duration
}

func (t *taken) add(s *sse.Stream) {
	t.asked = append(t.asked, s.Arrived.Sub(s.Begun))
	t.first = append(t.first, s.Tokens[0].Received.Sub(s.Begun))
	t.total = append(t.total, s.Ended.Sub(s.Begun))
}

// oneByOne runs turns in one session, the first two unmeasured.
func (b *bench) oneByOne(ctx context.Context, f *fleet.Fairlead, p provider.Plan, rounds int) (*taken, error) {
	session, err := f.Session(ctx)
	if err != nil {
		return nil, err
	}
	t := &taken{}
	var before time.Duration
	for i := range rounds + 2 {
		if i == 2 {
			before = f.CPU()
		}
		s, err := b.turnWithText(ctx, f, session, p)
		if err != nil {
			return nil, err
		}
		if i >= 2 {
			t.add(s)
		}
	}
	t.cpu = (f.CPU() - before) / time.Duration(rounds)
	return t, nil
}

// turnWithText is a turn that must bring text.
func (b *bench) turnWithText(ctx context.Context, f *fleet.Fairlead, session string, p provider.Plan) (*sse.Stream, error) {
	s, err := turn(ctx, f, session, p, nil)
	if err == nil && len(s.Tokens) == 0 {
		err = fmt.Errorf("a turn of %s brought no text", session)
	}
	return s, err
}

// turnsAtOnce runs turns of many sessions at once.
func (b *bench) turnsAtOnce(ctx context.Context, f *fleet.Fairlead) error {
	sessions := make([]string, turnsAtOne)
	for i := range sessions {
		var err error
		if sessions[i], err = f.Session(ctx); err != nil {
			return err
		}
	}
	if err := b.rest(ctx, f); err != nil {
		return err
	}
	before, begun := f.CPU(), time.Now()
	streams := make([]*sse.Stream, len(sessions))
	var g errgroup.Group
	for i, session := range sessions {
		g.Go(func() (err error) {
			streams[i], err = b.turnWithText(ctx, f, session, quick)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	wall, cpu := time.Since(begun), f.CPU()-before
	t := &taken{}
	for _, s := range streams {
		t.add(s)
	}
	b.row(fmt.Sprintf("  %d turns at once", turnsAtOne), "first text %s, all %s, CPU %s, RSS %d MB", t.first, stat.Milliseconds(wall), stat.Milliseconds(cpu), f.RSS()>>20)
	b.goal(t.first.At(0.5) <= atOnceGoal, "first text of %d at once %s; goal: %s", turnsAtOne, stat.Milliseconds(t.first.At(0.5)), stat.Milliseconds(atOnceGoal))
	b.goal(cpu <= atOnceCPUGoal, "CPU of %d at once %s; goal: %s", turnsAtOne, stat.Milliseconds(cpu), stat.Milliseconds(atOnceCPUGoal))
	return nil
}
