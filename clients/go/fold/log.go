// Package fold computes what a session is from the events of its log: its turns with their steps, blocks and calls, and
// what waits for a person. It takes events as they come, over any number of streams.
package fold

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Faults of an event that does not follow the ones before it.
var (
	// ErrRange is a malformed range: it begins below 1, or after its end.
	ErrRange = errors.New("the range is malformed")
	// ErrRepeated is an event whose numbers have all been seen.
	ErrRepeated = errors.New("the event was there already")
	// ErrGap is an event before which numbers are missing.
	ErrGap = errors.New("numbers are missing before the event")
	// ErrOverlap is an event that covers a part of another: a merged event takes the place of whole ones.
	ErrOverlap = errors.New("the event covers a part of another")
)

// Log is a client's copy of a session's log: events whose ranges tile the numbers from 1. The zero value is
// empty. It is for one goroutine.
type Log struct {
	events []*sessionv1.Event
	state  *State // of the events; nil: not known
}

// Last returns the highest number that the log covers: a client resumes after
// it.
func (l *Log) Last() int64 {
	if len(l.events) == 0 {
		return 0
	}
	return l.events[len(l.events)-1].GetSeq()
}

// Events returns the events, in order. The log owns them.
func (l *Log) Events() []*sessionv1.Event { return l.events }

// Add appends an event, or returns why it does not fit, without changing the log. An event that begins
// earlier replaces the events that it covers: the server has merged them since.
func (l *Log) Add(e *sessionv1.Event) error {
	first, seq, last := e.GetFirstSeq(), e.GetSeq(), l.Last()
	switch {
	case first < 1 || first > seq:
		return fmt.Errorf("%d..%d: %w", first, seq, ErrRange)
	case seq <= last:
		return fmt.Errorf("%d..%d after %d: %w", first, seq, last, ErrRepeated)
	case first > last+1:
		return fmt.Errorf("%d..%d after %d: %w", first, seq, last, ErrGap)
	}
	keep := sort.Search(len(l.events), func(i int) bool { return l.events[i].GetSeq() >= first })
	if keep < len(l.events) && l.events[keep].GetFirstSeq() < first {
		return fmt.Errorf("%d..%d over %d..%d: %w", first, seq, l.events[keep].GetFirstSeq(), l.events[keep].GetSeq(), ErrOverlap)
	}
	if keep < len(l.events) || e.GetStepRestarted() != nil || e.GetSessionRewound() != nil {
		l.state, l.events = nil, slices.Clone(l.events[:keep]) // who has Events keeps what it has
	} else if l.state != nil {
		l.state.apply(e)
	}
	l.events = append(l.events, e)
	return nil
}

// void is a range of numbers in which the events of some turns no longer count, or of all: then the session went back to
// a checkpoint.
type void struct {
	first, last int64
	turns       map[string]bool // nil: all
	restart     bool            // a step began again
}

func (v void) covers(e *sessionv1.Event) bool {
	return (v.turns == nil || v.turns[e.GetTurn()]) && v.first <= e.GetFirstSeq() && e.GetSeq() <= v.last
}

// voids returns the ranges of restarted steps and rewinds. The rewind of a turn includes the turns that were
// steered into it.
func (l *Log) voids() []void {
	var all []void
	steered := map[string][]string{} // into which turn: which
	for _, e := range l.events {
		switch b := e.GetBody().(type) {
		case *sessionv1.Event_TurnSteered:
			steered[b.TurnSteered.GetInto()] = append(steered[b.TurnSteered.GetInto()], e.GetTurn())
		case *sessionv1.Event_StepRestarted:
			all = append(all, void{b.StepRestarted.GetVoidFirstSeq(), b.StepRestarted.GetVoidLastSeq(), map[string]bool{e.GetTurn(): true}, true})
		case *sessionv1.Event_SessionRewound:
			if b.SessionRewound.GetUndoneTurn() == "" {
				all = append(all, void{first: b.SessionRewound.GetVoidFirstSeq(), last: b.SessionRewound.GetVoidLastSeq()})
				continue
			}
			v := void{b.SessionRewound.GetVoidFirstSeq(), b.SessionRewound.GetVoidLastSeq(), map[string]bool{b.SessionRewound.GetUndoneTurn(): true}, false}
			for _, t := range steered[b.SessionRewound.GetUndoneTurn()] {
				v.turns[t] = true
			}
			all = append(all, v)
		}
	}
	return all
}

// Counting returns the events that count, in order: those outside of void ranges, and all events about a turn
// as a whole.
func (l *Log) Counting() []*sessionv1.Event { return l.without(l.voids()) }

// without returns the events outside of the ranges, and all events about a turn as a whole.
func (l *Log) without(void []void) []*sessionv1.Event {
	var out []*sessionv1.Event
	for _, e := range l.events {
		covered := false
		for _, v := range void {
			covered = covered || v.covers(e)
		}
		if !covered || ofTurn(e) {
			out = append(out, e)
		}
	}
	return out
}

// ofTurn reports whether an event is about a turn as a whole.
func ofTurn(e *sessionv1.Event) bool { return strings.HasPrefix(sessionv1.EventName(e), "turn.") }
