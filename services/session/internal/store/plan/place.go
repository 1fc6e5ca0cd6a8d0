package plan

import (
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Place is the row of a workspace's place.
type Place struct {
	store.Key
	store.Place
}

// Made says that a session's workspace was made in a place.
type Made struct {
	store.Key
	Generation int64
}

// MadeIn returns the column of a place: the last generation in which the workspace is
// known to have been made. A new place then needs no reset of the column.
func MadeIn(p store.Place) int64 {
	if p.Made {
		return p.Generation
	}
	return 0
}

// Void says that a session's exports up to a sequence number may have undone changes.
type Void struct {
	store.Key
	Seq int64
}

// place records a workspace's place, replacing that of an earlier write.
func (p *planner) place(row Place) {
	i := slices.IndexFunc(p.out.Places, func(o Place) bool { return o.Key == row.Key })
	if i < 0 {
		p.out.Places = append(p.out.Places, row)
		return
	}
	p.out.Places[i] = row
}

// LeftFor returns the previous place of a workspace, as long as its files must be copied to the
// place of this generation. An older version does not know the columns and leaves them unchanged,
// so those of another generation do not count.
func LeftFor(p store.Place, generation int64) store.Left {
	if !p.Restore || p.Generation != generation {
		return store.Left{}
	}
	return p.Left
}
