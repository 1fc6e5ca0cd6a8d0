package workspace

import (
	"errors"
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// beforeTurn returns where a rewind to before a turn leads to. A step that may change files makes a
// checkpoint first, so the files were those of the first checkpoint since the turn began.
func (k *Checkpoints) beforeTurn(sc state.Scope, turn string) (*target, error) {
	unknown := &rewindError{sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND,
		fmt.Sprintf("The conversation does not have the turn %s: it never began, joined another turn, or was left behind by a rewind. Nothing was changed. Name a turn whose message the conversation has.", turn)}
	t, err := sc.Store.GetTurn(sc, sc.Lease.Key, state.LastSegment(turn))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, fmt.Errorf("read the turn of a rewind: %w", err)
	}
	keep := slices.IndexFunc(sc.Path, func(m *sessionv1.Message) bool { return m.Turn == turn })
	if keep < 0 || t.SteeredInto != "" {
		return nil, unknown
	}
	to := &target{turn: turn, keep: keep}
	var changes changes
	if err := changes.read(sc, t); err != nil {
		return nil, err
	}
	if changes.start == 0 {
		return nil, unknown
	}
	to.void, to.newest = changes.start, changes.start
	if len(changes.kept) == 0 {
		return to, nil
	}
	at := slices.IndexFunc(k.kept, func(c *sessionv1.Checkpoint) bool { return c.Name == changes.kept[0].checkpoint })
	if at < 0 {
		return nil, &rewindError{sessionv1.ErrorReason_ERROR_REASON_REWIND_FAILED,
			fmt.Sprintf("The files before the turn %s are not kept: the checkpoint of its first change could not be made, or has made room for newer ones. Neither the conversation nor the files were changed. Rewind to one of the session's checkpoints.", turn)}
	}
	to.snapshot = k.kept[at].Snapshot
	return to, nil
}

// changes is what the log says of the files since a turn began.
type changes struct {
	start int64 // the number of the turn's beginning
	kept  []change
}

// change is a change of files that was about to happen.
type change struct {
	seq        int64
	checkpoint string // that was made before it; empty: it could not be made
}

// read reads the log from the beginning of a turn.
func (c *changes) read(sc state.Scope, t *sessionv1.Turn) error {
	if err := sc.Flush(); err != nil {
		return err
	}
	for after := t.AfterSeq; ; {
		page, err := sc.Store.ListEvents(sc, sc.Lease.Key, after, 1000, 1<<20)
		if err != nil {
			return fmt.Errorf("read the log of a rewind: %w", err)
		}
		for _, e := range page {
			c.add(t, e)
			after = e.Seq
		}
		if len(page) == 0 {
			return nil
		}
	}
}

func (c *changes) add(t *sessionv1.Turn, e *sessionv1.Event) {
	rewound := e.GetSessionRewound()
	switch {
	case e.GetTurnStarted() != nil && e.Turn == t.Name:
		c.start = e.FirstSeq
	case c.start == 0: // the turn waited for another one
	case e.GetCheckpointCreated() != nil:
		c.kept = append(c.kept, change{e.Seq, e.GetCheckpointCreated().Checkpoint})
	case e.GetWarning().GetReason() == "FILES_NOT_KEPT":
		c.kept = append(c.kept, change{seq: e.Seq})
	case rewound != nil: // the files went back, too
		c.kept = slices.DeleteFunc(c.kept, func(k change) bool {
			return k.seq >= rewound.VoidFirstSeq && k.seq <= rewound.VoidLastSeq && (k.checkpoint == "" || k.checkpoint != rewound.Checkpoint)
		})
	}
}
