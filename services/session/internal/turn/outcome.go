package turn

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// apply makes the turn wait or end, as the outcome of a piece of work says.
func (w *Worker) apply(ctx context.Context, o state.Outcome) error {
	switch e := o.End; {
	case o.Wait != nil:
		return w.wait(ctx, o.Wait.Write, o.Wait.CallIDs...)
	case e == nil:
		return nil
	case e.Cause != nil:
		return w.stopWith(ctx, e.Write, e.Cause)
	case e.Failure:
		return w.failWith(ctx, e.Write, e.Error)
	default:
		return w.finish(ctx, e.Write, e.State, e.Error)
	}
}
