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
