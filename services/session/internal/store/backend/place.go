package backend

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

// MadeIn is the column of a place: the last generation in which the workspace is known
// to have been made, for then nothing has to be forgotten when it gets another place.
func MadeIn(p store.Place) int64 {
	if p.Made {
		return p.Generation
	}
	return 0
}

// Void says that a session's exports up to a number of the log may have what was undone.
type Void struct {
	store.Key
	Seq int64
}

// place notes where a workspace is, in the place of what an earlier write said.
func (p *planner) place(row Place) {
	i := slices.IndexFunc(p.out.Places, func(o Place) bool { return o.Key == row.Key })
	if i < 0 {
		p.out.Places = append(p.out.Places, row)
		return
	}
	p.out.Places[i] = row
}

// LeftFor is why a workspace left the place before, as long as its files are to be brought to the
// one that this was written for. An older version, which does not know of it, leaves it as it was.
func LeftFor(p store.Place, generation int64) store.Left {
	if !p.Restore || p.Generation != generation {
		return store.Left{}
	}
	return p.Left
}
