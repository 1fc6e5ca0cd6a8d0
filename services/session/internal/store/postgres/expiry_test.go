package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// TestARepeatAtTheExpiryOfItsAnswerIsAnswered repeats a request until after its answer has expired. The time of
// Postgres goes on within the transaction.
func TestARepeatAtTheExpiryOfItsAnswerIsAnswered(t *testing.T) {
	s := open(t, pgtest.New(t))
	owner := store.Owner{Tenant: "t", User: "ann"}
	for i := range 100 {
		keep := time.Now().Add(4 * time.Millisecond)
		r := store.Request{Method: "SetUserVariable", Parent: "users/ann", ID: fmt.Sprint("r", i), Digest: []byte("one"), KeepUntil: keep}
		for time.Now().Before(keep.Add(3 * time.Millisecond)) {
			if _, err := s.SetVariable(t.Context(), owner, store.Variable{Name: "A", Value: "x"}, r); err != nil {
				t.Fatalf("a repeat %v after the expiry: %v", time.Since(keep), err)
			}
		}
	}
}
