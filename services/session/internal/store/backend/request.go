package backend

import (
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ForgetBatch bounds how many expired request ids a mutation removes beside its
// own work. More than one, so that they do not pile up.
const ForgetBatch = 16

// deleteKept is how long the answer to a deletion is kept.
const deleteKept = 24 * time.Hour

// KeepDelete tells until when the answer to a deletion is kept: as the request
// says, but it cannot go with the session.
func KeepDelete(asked, now time.Time) time.Time {
	if asked.IsZero() {
		return now.Add(deleteKept)
	}
	return asked
}

// Answered is what a mutation returns: no answer beside an error.
func Answered(a store.Answer, err error) (store.Answer, error) {
	if err != nil {
		return store.Answer{}, err
	}
	return a, nil
}
