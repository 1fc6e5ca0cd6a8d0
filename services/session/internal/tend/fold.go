package tend

import (
	"context"
	"errors"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// maxFolded is about how large a folded event becomes, in bytes; what is more
	// goes on in another one.
	maxFolded = 256 << 10
	// pageEvents and pageBytes bound what is read, and so replaced, at one time.
	pageEvents = 2000
	pageBytes  = 1 << 20
)

// Fold merges neighbors that are deltas of the same block, of the turns of
// events that are given. Deltas that alternate, such as the output of parallel
// calls, stay as they are: their ranges could not tile otherwise. The events
// are changed.
func Fold(events []*sessionv1.Event) []*sessionv1.Event {
	return eventlog.MergeDeltas(events, maxFolded)
}

// fold folds the log of a session from behind a number on, up to the end of the
// turn. Doing it again finds nothing left to do.
func (t *Tender) fold(ctx context.Context, k store.Key, after int64, turn string) error {
	for {
		events, err := t.store.ListEvents(ctx, k, after, pageEvents, pageBytes)
		if err != nil {
			return fmt.Errorf("read events to fold: %w", err)
		}
		events, over := until(events, turn)
		if len(events) == 0 {
			return nil
		}
		first, last, n := events[0].FirstSeq, events[len(events)-1].Seq, len(events)
		folded := Fold(events)
		if len(folded) < n {
			if err := t.store.FoldEvents(ctx, k, first, last, folded); err != nil {
				return fmt.Errorf("fold %d..%d: %w", first, last, err)
			}
		}
		if over {
			return nil
		}
		// The block at the page's end may go on: begin the next page with it, unless
		// there was nothing else on this one.
		if after = last; n > 1 {
			after = folded[len(folded)-1].FirstSeq - 1
		}
	}
}

// until cuts events behind the end of the turn, and tells whether it is there.
func until(events []*sessionv1.Event, turn string) ([]*sessionv1.Event, bool) {
	for i, e := range events {
		if e.Turn == turn && e.GetTurnFinished() != nil {
			return events[:i+1], true
		}
	}
	return events, false
}

// gone tells whether there is nothing left to tend: the session was deleted.
func gone(err error) bool { return errors.Is(err, store.ErrNotFound) }
