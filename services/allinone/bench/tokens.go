package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/sse"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// plan is how the model answers during the measurement of single turns: a first
// token soon, and then as many a second as a fast model sends.
var plan = provider.Plan{Tokens: 25, Every: 12 * time.Millisecond, First: 40 * time.Millisecond}

// rounds is how many turns of each kind are measured.
const rounds = 50

// route is a way from the model server to a client.
type route struct {
	name    string
	added   time.Duration // allowed beside one commit
	store   []string      // the arguments with which storebench reaches a store of the same kind
	request func(ctx context.Context) (*sse.Stream, error)

	before, first, rest stat.Times // until the model is asked; the first token; the others
}

// measureTokens runs turns over every route in turn, so that all of them have the
// same noise.
func measureTokens(ctx context.Context, b *bench) error {
	routes, stop, err := b.routes(ctx)
	defer stop()
	if err != nil {
		return err
	}
	for i := range rounds + 2 {
		for _, r := range routes {
			s, err := r.request(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if len(s.Tokens) != plan.Tokens {
				return fmt.Errorf("%s: %d of %d tokens arrived", r.name, len(s.Tokens), plan.Tokens)
			}
			if i >= 2 { // the first ones open connections
				r.add(s)
			}
		}
	}
	direct := routes[0]
	b.row(direct.name, "first token %s, each other %s", direct.first, direct.rest)
	for _, r := range routes[1:] {
		if err := b.reportRoute(ctx, direct, r); err != nil {
			return err
		}
	}
	return nil
}

func (r *route) add(s *sse.Stream) {
	r.before = append(r.before, s.Arrived.Sub(s.Begun))
	for i, t := range s.Tokens {
		if took := t.Received.Sub(t.Sent); i == 0 {
			r.first = append(r.first, took)
		} else {
			r.rest = append(r.rest, took)
		}
	}
}

// reportRoute compares a route with reading the model server directly.
func (b *bench) reportRoute(ctx context.Context, direct, r *route) error {
	var commit times
	if err := b.storebench(ctx, &commit, append([]string{"commit", "--count", "300"}, r.store...)...); err != nil {
		return err
	}
	b.row(r.name, "first token %s, each other %s", r.first, r.rest)
	b.row("  from submit until the model is asked", "%s (direct: %s)", r.before, direct.before)
	b.row("  one synced commit of one event", "p50 %.2f ms p99 %.2f ms (n=%d)", commit.P50/1e3, commit.P99/1e3, commit.Count)
	one := time.Duration(commit.P50 * 1e3)
	for _, kind := range []struct {
		name     string
		got, was stat.Times
	}{{"first token", r.first, direct.first}, {"each other token", r.rest, direct.rest}} {
		added := kind.got.At(0.5) - kind.was.At(0.5)
		b.goal(added <= one+r.added, "%s: added at the median %s = %.2f commits; goal: one commit + %s = %s", kind.name,
			stat.Milliseconds(added), float64(added)/float64(one), stat.Milliseconds(r.added), stat.Milliseconds(one+r.added))
	}
	return nil
}

// times is the output of storebench, in microseconds.
type times struct {
	Count         int
	P50, P90, P99 float64
}

// routes starts the measured programs. stop ends them, also after an error.
func (b *bench) routes(ctx context.Context) (_ []*route, stop func(), err error) {
	var running []*fleet.Fairlead
	stop = func() {
		for _, f := range running {
			f.Stop()
		}
	}
	direct := `{"messages":[{"role":"user","content":"` + plan.Prompt() + `"}]}`
	routes := []*route{{name: "the model server, read directly", request: func(ctx context.Context) (*sse.Stream, error) {
		return sse.Read(ctx, http.MethodPost, b.modelURL+"/v1/messages", direct, nil)
	}}}
	database, err := b.database(ctx)
	if err != nil {
		return nil, stop, err
	}
	other, err := b.database(ctx)
	if err != nil {
		return nil, stop, err
	}
	for _, k := range []struct {
		route    route
		database string
		four     bool
	}{
		{route{name: "all in one on SQLite", added: time.Millisecond, store: []string{"--data", b.data()}}, "", false},
		{route{name: "four processes on Postgres", added: 3 * time.Millisecond, store: []string{"--database", other}}, database, true},
	} {
		f, err := fleet.Run(ctx, b.shape(k.database, k.four))
		if err != nil {
			return nil, stop, fmt.Errorf("%s: %w", k.route.name, err)
		}
		running = append(running, f)
		k.route.request = func(ctx context.Context) (*sse.Stream, error) {
			session, err := f.Session(ctx)
			if err != nil {
				return nil, err
			}
			return turn(ctx, f, session, plan, nil)
		}
		routes = append(routes, &k.route)
	}
	return routes, stop, nil
}

// turn runs one turn and reads its stream.
func turn(ctx context.Context, f *fleet.Fairlead, session string, p provider.Plan, on func(sse.Token)) (*sse.Stream, error) {
	s, err := sse.Read(ctx, http.MethodPost, f.URL+"/v1/"+session+"/turns:stream", `{"text":"`+p.Prompt()+`"}`, on)
	if err == nil && s.Last != "turn.finished" {
		err = fmt.Errorf("the turn's stream ended with %q", s.Last)
	}
	return s, err
}
