package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/cluster"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/faults"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/load"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// options say how a run goes.
type options struct {
	dir      string // of data, logs and recordings
	seed     uint64
	kills    int
	sessions int
	interval time.Duration
	lease    time.Duration
	settle   time.Duration // how long turns may take to end after the last fault
	duration time.Duration // of the faults, at most
	race     bool
	only     []string
	log      func(format string, args ...any)
}

// run makes load and faults, reads what is there at the end, and judges it. With an error there is nothing to judge.
func run(ctx context.Context, o options) (rec *record.Run, rep check.Report, err error) {
	s := script.New(o.seed)
	o.log("building and starting the programs in %s", o.dir)
	c, err := cluster.Start(ctx, cluster.Options{Dir: o.dir, Scenario: s.YAML(), Model: "play:" + script.Name, Ask: script.Ask, Race: o.race, LeaseTTL: o.lease})
	if err != nil {
		return nil, rep, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rec = &record.Run{Seed: o.seed, Begin: time.Now()}
	l, err := load.Start(ctx, load.Options{Replicas: c.Replicas, Tools: c.ToolsPublic, HTTP: c.HTTP, Sessions: o.sessions, Seed: o.seed, Script: s})
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
	rec.End = time.Now()
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

// revive starts the programs again that have ended by themselves, and returns their names.
func revive(ctx context.Context, c *cluster.Cluster) (fallen []string, err error) {
	for _, p := range c.Processes() {
		if p.Ended() {
			fallen = append(fallen, p.Name)
			err = errors.Join(err, p.Start(ctx))
		}
	}
	return fallen, err
}

// reader reads what is there at the end.
type reader struct {
	cluster  *cluster.Cluster
	load     *load.Load
	conns    []*grpc.ClientConn
	replicas []sessionv1.SessionServiceClient
}

func newReader(c *cluster.Cluster, l *load.Load) (*reader, error) {
	r := &reader{cluster: c, load: l}
	for _, a := range c.Replicas {
		conn, err := grpc.NewClient(a, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			r.close()
			return nil, err
		}
		r.conns = append(r.conns, conn)
		r.replicas = append(r.replicas, sessionv1.NewSessionServiceClient(conn))
	}
	return r, nil
}

func (r *reader) close() {
	for _, c := range r.conns {
		_ = c.Close()
	}
}

// session completes the record of a session.
func (r *reader) session(ctx context.Context, s *record.Session) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.Log, err = events(ctx, r.replicas[0], s.Name); err != nil {
		return err
	}
	if s.Again, err = events(ctx, r.replicas[1], s.Name); err != nil {
		return err
	}
	s.Turns, err = pages(func(token string) ([]*sessionv1.Turn, string, error) {
		resp, err := r.replicas[0].ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s.Name, PageSize: 1000, PageToken: token})
		return resp.GetTurns(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	s.Messages, err = pages(func(token string) ([]*sessionv1.Message, string, error) {
		resp, err := r.replicas[1].ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: s.Name, PageSize: 1000, PageToken: token})
		return resp.GetMessages(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	for call, o := range s.Operations {
		if o.End, err = r.load.Operation(ctx, 0, call); err != nil {
			return err
		}
		if o.Again, err = r.load.Operation(ctx, 1, call); err != nil {
			return err
		}
	}
	s.Effects, err = r.cluster.Effects(strings.TrimPrefix(s.Name, "sessions/"), script.Effects)
	return err
}

func events(ctx context.Context, c sessionv1.SessionServiceClient, session string) ([]*sessionv1.Event, error) {
	return pages(func(token string) ([]*sessionv1.Event, string, error) {
		resp, err := c.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, PageSize: 1000, PageToken: token})
		return resp.GetEvents(), resp.GetNextPageToken(), err
	})
}

// pages reads a list to its end.
func pages[T any](read func(token string) ([]T, string, error)) ([]T, error) {
	var all []T
	for token := ""; ; {
		some, next, err := read(token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next == "" {
			return all, nil
		}
		token = next
	}
}

// violations are those of a report, for people.
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
