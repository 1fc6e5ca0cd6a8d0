package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// onlyFold is the body of a JobAfterTurn whose messages are indexed; an empty one means everything.
	onlyFold = "fold"
	// indexBatch is how many messages are indexed at one time.
	indexBatch = 50
	// maxFolded is about the largest size of a folded event, in bytes; longer
	// text continues in another one.
	maxFolded = 256 << 10
	// pageEvents and pageBytes bound what one step reads and replaces.
	pageEvents = 2000
	pageBytes  = 1 << 20
)

// afterTurn does a store.JobAfterTurn: it indexes the turn's messages at once, and folds its deltas later, when they
// are probably no longer followed.
func (d *Deps) afterTurn(ctx context.Context, j store.Job) (*store.Job, error) {
	session, turn, ok := strings.Cut(j.ID, "/")
	if !ok {
		return nil, fmt.Errorf("the job %q names no turn", j.ID)
	}
	k := store.Key{Tenant: j.Tenant, Session: session}
	if string(j.Body) != onlyFold {
		err := d.index(ctx, k)
		if err != nil && !sessionDeleted(err) {
			return nil, err
		}
		return &store.Job{Body: []byte(onlyFold), After: d.FoldAfter}, nil
	}
	found, err := d.Store.GetTurn(ctx, k, turn)
	if err == nil {
		err = d.fold(ctx, k, found.AfterSeq, found.Name)
	}
	if sessionDeleted(err) {
		return nil, nil
	}
	return nil, err
}

// index indexes all messages of the session that are not indexed yet.
func (d *Deps) index(ctx context.Context, k store.Key) error {
	for {
		n, err := d.Store.IndexMessages(ctx, k, indexBatch)
		if err != nil {
			return fmt.Errorf("index messages: %w", err)
		}
		if n < indexBatch {
			return nil
		}
	}
}

// foldDeltas merges adjacent deltas of the same block, for events of turns.
// Alternating deltas, such as the output of parallel calls, are not merged:
// their ranges could not tile otherwise. It changes the events.
func foldDeltas(events []*sessionv1.Event) []*sessionv1.Event {
	return eventlog.MergeDeltas(events, maxFolded)
}

// fold folds the log of a session behind a number, up to the end of the turn.
// Repeating it changes nothing.
func (d *Deps) fold(ctx context.Context, k store.Key, after int64, turn string) error {
	for {
		events, err := d.Store.ListEvents(ctx, k, after, pageEvents, pageBytes)
		if err != nil {
			return fmt.Errorf("read events to fold: %w", err)
		}
		events, over := until(events, turn)
		if len(events) == 0 {
			return nil
		}
		first, last, n := events[0].FirstSeq, events[len(events)-1].Seq, len(events)
		folded := foldDeltas(events)
		if len(folded) < n {
			if err := d.Store.FoldEvents(ctx, k, first, last, folded); err != nil {
				return fmt.Errorf("fold %d..%d: %w", first, last, err)
			}
		}
		if over {
			return nil
		}
		// The block at the page's end may continue: begin the next page with it,
		// unless it is the only event of this one.
		if after = last; n > 1 {
			after = folded[len(folded)-1].FirstSeq - 1
		}
	}
}

// until cuts events behind the end of the turn, and reports whether they
// contain it.
func until(events []*sessionv1.Event, turn string) ([]*sessionv1.Event, bool) {
	for i, e := range events {
		if e.Turn == turn && e.GetTurnFinished() != nil {
			return events[:i+1], true
		}
	}
	return events, false
}

// sessionDeleted reports whether the session was deleted.
func sessionDeleted(err error) bool { return errors.Is(err, store.ErrNotFound) }
