package plan

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ForFold returns the rows of events that are to cover first..last.
func ForFold(k store.Key, first, last int64, events []*sessionv1.Event) ([]Event, error) {
	rows := make([]Event, 0, len(events))
	for _, e := range events {
		row, err := eventRow(k, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, Tile(rows, first, last)
}

// Tile checks that events, in order, cover first..last without gap and overlap.
// It looks only at their numbers.
func Tile(rows []Event, first, last int64) error {
	next := first
	for _, e := range rows {
		if e.FirstSeq != next || e.Seq < e.FirstSeq {
			return fmt.Errorf("event %d..%d in the place of %d: %w", e.FirstSeq, e.Seq, next, store.ErrNotTiled)
		}
		next = e.Seq + 1
	}
	if next != last+1 || len(rows) == 0 {
		return fmt.Errorf("%d..%d is covered up to %d: %w", first, last, next-1, store.ErrNotTiled)
	}
	return nil
}
