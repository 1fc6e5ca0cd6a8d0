package e2e

import (
	"net/http"
	"testing"
)

// TestASessionIsMadeAgainUnderTheIDOfADeletedOne runs turns with tools in both:
// what refuses late calls of the first must not refuse those of the second.
func TestASessionIsMadeAgainUnderTheIDOfADeletedOne(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		for range 2 {
			r := s.call(t, http.MethodPost, "/v1/sessions?session_id=mine", `{"agent":"coder"}`)
			if r.code != http.StatusOK {
				t.Fatalf("create: %d %s", r.code, r.body)
			}
			frames := s.turn(t, "sessions/mine", "work")
			last(t, frames, "COMPLETE")
			checkResults(t, results(frames))
			if r := s.call(t, http.MethodDelete, "/v1/sessions/mine", ""); r.code != http.StatusOK {
				t.Fatalf("delete: %d %s", r.code, r.body)
			}
		}
	})
}
