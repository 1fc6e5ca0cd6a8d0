package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/cluster"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/counter"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/faults"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/load"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// options configure a run.
type options struct {
	dir      string // of data, logs and recordings
	seed     uint64
	kills    int
	sessions int
	interval time.Duration
	lease    time.Duration
	settle   time.Duration // how long turns may take to end after the last fault
	duration time.Duration // of the faults, at most
	kinds    time.Duration // how long the load may go on after the faults until it has seen each kind of work; 0: it need not
	race     bool
	only     []string
	log      func(format string, args ...any)
}

// run makes load and faults, reads the final state, and judges it. After an error there is nothing to judge.
func run(ctx context.Context, o options) (rec *record.Run, rep check.Report, err error) {
	s := script.New(o.seed)
	o.log("building and starting the programs in %s", o.dir)
	notes, err := counter.Start(ctx)
	if err != nil {
		return nil, rep, err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: o.dir, Scenario: s.YAML(), Model: "play:" + script.Name, Ask: script.Ask, Config: budgetConfig("play:" + script.Name),
		Agent: "mcp-servers: " + notes.Config() + ", subagents: " + script.Subagents(), Race: o.race, LeaseTTL: o.lease,
	})
	if err != nil {
		return nil, rep, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rec = &record.Run{Seed: o.seed, Begin: time.Now(), Prices: prices, Budgets: budgets()}
	l, err := load.Start(ctx, load.Options{
		Replicas: c.Replicas, Tools: c.ToolsPublic, HTTP: c.HTTP, GRPC: c.GRPC, Agent: cluster.Agent, Sessions: o.sessions, Seed: o.seed, Script: s,
		Tenant: smallTenant, Users: smallUsers, SessionPeers: c.Peers(record.SessionService), ToolPeers: c.Peers(record.ToolsService), Keys: c.Keys,
	})
	if err != nil {
		return nil, rep, err
	}
	r := faults.New(c, faults.Options{Seed: o.seed, Kills: o.kills, Interval: o.interval, LeaseTTL: o.lease, Only: o.only, Log: func(format string, args ...any) {
		o.log("%5d turns  "+format, append([]any{l.Finished()}, args...)...)
	}})
	var faulty error
	limited, stop := context.WithTimeout(ctx, o.duration)
	defer stop()
	rec.Faults, faulty = r.Run(limited)
	fallen, err := revive(ctx, c)
	if err != nil {
		return nil, rep, err
	}
	if faulty == nil && o.kinds > 0 {
		faulty = eachKind(ctx, l, o.kinds)
	}
	o.log("the last fault is over; waiting for the turns to end")
	settle, cancel := context.WithTimeout(ctx, o.settle)
	defer cancel()
	if err := l.Stop(settle); err != nil {
		o.log("%v", err) // the checker finds them
	}
	read, err := newReader(c, l)
	if err != nil {
		return nil, rep, err
	}
	defer read.close()
	if rec.Sessions, err = l.Close(ctx, read.session); err != nil {
		return nil, rep, err
	}
	rec.End, rec.Notes = time.Now(), notes.Notes()
	rep = check.Run(rec, s, check.Limits{Takeover: 10 * time.Second, Restarts: 2, Slack: time.Second})
	for rule, programs := range map[check.Rule][]string{
		"no program ends by itself":  append(c.Logged((*cluster.Process).Panicked), fallen...),
		"no program has a data race": c.Logged((*cluster.Process).Raced),
	} {
		for _, p := range programs {
			rep.Violations = append(rep.Violations, check.Violation{Rule: rule, Session: p})
		}
	}
	return rec, rep, faulty
}

// eachKind lets the load go on until it has seen each kind of work.
func eachKind(ctx context.Context, l *load.Load, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if missing := l.AwaitEachKind(ctx); len(missing) > 0 {
		return fmt.Errorf("within %s after the faults the load has never seen %s", most, strings.Join(missing, ", nor "))
	}
	return nil
}

// revive restarts the programs that have ended by themselves, and returns their names.
func revive(ctx context.Context, c *cluster.Cluster) (fallen []string, err error) {
	for _, p := range c.Processes() {
		if p.Ended() {
			fallen = append(fallen, p.Name)
			err = errors.Join(err, p.Start(ctx))
		}
	}
	return fallen, err
}

// violations formats those of a report for people.
func violations(rep check.Report, most int) string {
	var b strings.Builder
	for i, v := range rep.Violations {
		if i == most {
			fmt.Fprintf(&b, "  … and %d more\n", len(rep.Violations)-most)
			break
		}
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
