// Package reduce is the client's side of a session's log, as docs/architecture.md describes it: it takes events as they
// come, over any number of streams, and makes the session's state of them. It knows the contract and nothing of the
// servers, so that what it makes of a client's recording and of the log itself can be compared.
package reduce

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// What is wrong with an event that does not fit behind those before it.
var (
	// ErrRange is a range that is none: it begins below 1, or after its end.
	ErrRange = errors.New("the range is malformed")
	// ErrRepeated is an event whose numbers have all been seen.
	ErrRepeated = errors.New("the event was there already")
	// ErrGap is an event before which numbers are missing.
	ErrGap = errors.New("numbers are missing before the event")
	// ErrOverlap is an event that covers a part of another: a merged event takes the place of whole ones.
	ErrOverlap = errors.New("the event covers a part of another")
)

// Log is what a client has of a session's log: events whose ranges tile the numbers from 1. The zero value is empty.
type Log struct{ events []*sessionv1.Event }

// Last is the highest number that the log covers: what a client resumes after.
func (l *Log) Last() int64 {
	if len(l.events) == 0 {
		return 0
	}
	return l.events[len(l.events)-1].GetSeq()
}

// Events are the events, in order. They are the log's own.
func (l *Log) Events() []*sessionv1.Event { return l.events }

// Add appends an event, or says why it does not fit; then the log stays as it was. An event that begins earlier takes
// the place of the events that it covers: the server has merged them since.
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
	l.events = append(slices.Clip(l.events[:keep]), e)
	return nil
}

// Void are the ranges that no longer count, in the order in which they were named.
func (l *Log) Void() [][2]int64 {
	var ranges [][2]int64
	for _, e := range l.events {
		if r := e.GetStepRestarted(); r != nil && r.GetVoidFirstSeq() > 0 {
			ranges = append(ranges, [2]int64{r.GetVoidFirstSeq(), r.GetVoidLastSeq()})
		}
		if r := e.GetSessionRewound(); r != nil && r.GetVoidFirstSeq() > 0 {
			ranges = append(ranges, [2]int64{r.GetVoidFirstSeq(), r.GetVoidLastSeq()})
		}
	}
	return ranges
}

// Counting are the events that no void range covers, in order.
func (l *Log) Counting() []*sessionv1.Event {
	void := l.Void()
	slices.SortFunc(void, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	var out []*sessionv1.Event
	for _, e := range l.events {
		i := sort.Search(len(void), func(i int) bool { return void[i][1] >= e.GetSeq() })
		if i < len(void) && void[i][0] <= e.GetFirstSeq() {
			continue
		}
		out = append(out, e)
	}
	return out
}
