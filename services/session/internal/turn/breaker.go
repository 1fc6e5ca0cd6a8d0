package turn

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// guard ends the turn, in the write with a step's results, when a guardrail of
// its model strikes, and reports whether it did. Half way to a guardrail, the
// model reads a warning beside the results.
func (w *Worker) guard(ctx context.Context, write store.Write) (bool, error) {
	resolved, err := w.Resolve(w.Spec.Model)
	if err != nil {
		return false, nil //nolint:nilerr // without a model there is no step to guard; the next one says so
	}
	turn := w.TurnMessages()
	found := resolved.Guardrails.Check(turn)
	switch {
	case found == nil:
		results := write.Messages[len(write.Messages)-1]
		step := len(turn) - 1
		for step > 0 && turn[step].Role != sessionv1.Role_ROLE_ASSISTANT {
			step--
		}
		if hint := resolved.Guardrails.Hint(turn, step); hint != "" {
			results.Blocks = append(results.Blocks, state.TextBlock(hint))
		}
		return false, nil
	case found.Partial:
		return true, w.partial(ctx, write, found.Reason, found.Message)
	default:
		return true, w.fail(ctx, write, found.Reason, found.Message)
	}
}
