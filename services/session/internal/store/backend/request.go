package backend

import "time"

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
