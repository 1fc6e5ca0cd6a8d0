package check

import (
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

type event = sessionv1.Event

// difference returns how two states differ, or "".
func difference(a, b *fold.State) string {
	d := cmp.Diff(a, b)
	if len(d) > 2000 {
		d = d[:2000] + "…"
	}
	return d
}

// follower checks the events that a client received, over all its streams.
func (c *checker) follower(s *record.Session, f *record.Follower, log *fold.Log, state *fold.State) {
	own := &fold.Log{}
	for _, stream := range f.Streams {
		c.report.Stats.Streams++
		if stream.After != own.Last() {
			c.fault(Resuming, s, "%s asked to go on after %d and had come to %d", f.Name, stream.After, own.Last())
		}
		for i, e := range stream.Events {
			c.report.Stats.Received++
			last := own.Last()
			if err := own.Add(e); err != nil {
				c.fault(Resuming, s, "%s, over %s: %v", f.Name, stream.Via, err)
				continue
			}
			if i > 0 && e.GetFirstSeq() != last+1 {
				c.fault(Resuming, s, "%s, over %s: %d..%d shows again what ended with %d", f.Name, stream.Via, e.GetFirstSeq(), e.GetSeq(), last)
			}
		}
	}
	c.contained(s, f, own, log)
	if own.Last() != log.Last() {
		c.fault(NotLost, s, "%s came to %d, the log ends with %d", f.Name, own.Last(), log.Last())
		return
	}
	if d := difference(state, own.State()); d != "" {
		c.fault(SameState, s, "%s has another state than the log (- log, + client): %s", f.Name, d)
	}
}

// contained checks that the log has every event that a client received: unchanged, or merged into a larger
// one.
func (c *checker) contained(s *record.Session, f *record.Follower, own, log *fold.Log) {
	events, i := log.Events(), 0
	for _, e := range own.Events() {
		for i < len(events) && events[i].GetSeq() < e.GetSeq() {
			i++
		}
		switch {
		case i == len(events) || events[i].GetFirstSeq() > e.GetFirstSeq():
			c.fault(NotLost, s, "%s received %d..%d, which is not in the log", f.Name, e.GetFirstSeq(), e.GetSeq())
		case events[i].GetFirstSeq() == e.GetFirstSeq() && events[i].GetSeq() == e.GetSeq() && !proto.Equal(events[i], e):
			c.fault(NotLost, s, "%s received %d..%d as %v, and the log has %v", f.Name, e.GetFirstSeq(), e.GetSeq(), e, events[i])
		}
	}
}
