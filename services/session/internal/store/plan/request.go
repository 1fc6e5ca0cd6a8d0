package plan

import (
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ForgetBatch bounds how many expired request ids a mutation also removes. It
// is more than one, so that they do not pile up.
const ForgetBatch = 16

// deleteKept is how long the answer to a deletion is kept.
const deleteKept = 24 * time.Hour

// KeepDelete returns until when the answer to a deletion is kept: until the
// requested time, or by default for deleteKept, since it cannot be deleted with
// the session.
func KeepDelete(asked, now time.Time) time.Time {
	if asked.IsZero() {
		return now.Add(deleteKept)
	}
	return asked
}

// Answered returns the result of a mutation: no answer beside an error.
func Answered(a store.Answer, err error) (store.Answer, error) {
	if err != nil {
		return store.Answer{}, err
	}
	return a, nil
}
