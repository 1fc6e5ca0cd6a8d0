package spend

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestTurnsThatWaitForABudgetTryOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var qs Queues
		enter := func(ctx context.Context, subject string) (func(), error) {
			return qs.Enter(ctx, "acme", store.BudgetUser, subject)
		}
		leave, err := enter(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		first := false
		go func() {
			leave, err := enter(t.Context(), "ada")
			if err != nil {
				t.Error(err)
				return
			}
			first = true
			leave()
		}()
		synctest.Wait()
		if first {
			t.Error("two are first in one queue")
		}
		other, err := enter(t.Context(), "eve")
		if err != nil {
			t.Fatalf("the queue of another budget: %v", err)
		}
		other()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := enter(gone, "ada"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that is gone: %v", err)
		}
		leave()
		synctest.Wait()
		if !first || len(qs.queues) != 0 {
			t.Errorf("the next one is first: %v; %d queues are left", first, len(qs.queues))
		}
	})
}
