package call

import (
	"context"
	"errors"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// A call is started in one place of its session's workspace, and stays there. If the
// workspace has another place by now, the node of the call is lost or has given the
// workspace away. The call's changes to the workspace are gone, and its other effects
// are unknown.

// placeLost reports whether a caller knows of a later place than the one in which a
// call was started.
func placeLost(rec store.Record, ref store.Ref) bool {
	return rec.State == store.Started && rec.Generation > 0 && ref.Generation > rec.Generation
}

// lostPlace returns the result of such a call.
func lostPlace() *tool.Result {
	return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN,
		"The machine on which this call ran was lost, and how it ended is not known. What it did to the workspace is gone. What it did elsewhere may have taken effect: check before repeating it.")
}

// dropLost stops a call whose place is lost, if it runs here. Its end is then read
// from the journal.
func (e *Engine) dropLost(ctx context.Context, ref store.Ref) (ran bool, err error) {
	r := e.find(ref)
	if r == nil {
		return false, nil
	}
	r.raise(ref.Epoch)
	r.cancel(tool.ErrPlaceLost)
	return true, r.wait(ctx)
}

// lost ends a call whose place is lost.
func (a *attempt) lost(ctx context.Context) error {
	ran, err := a.dropLost(ctx, a.Ref)
	switch {
	case err != nil:
		return err
	case ran:
		return store.ErrConflict
	case a.rec.Live && a.rec.Owner.ID != a.Self.ID:
		return a.elsewhere(ctx)
	}
	return a.endUnrun(ctx, nil, lostPlace())
}

// cancelLost is lost for a cancellation.
func (e *Engine) cancelLost(ctx context.Context, ref store.Ref, rec store.Record, forwarded bool) (*tool.Result, error) {
	ran, err := e.dropLost(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case ran:
		return nil, store.ErrConflict
	case !forwarded && e.isElsewhere(rec):
		if result, err := e.Peers.Cancel(ctx, rec.Owner.Address, ref); !errors.Is(err, ErrReplicaUnavailable) {
			return result, err
		}
	}
	result := lostPlace()
	bytes, err := encode(result)
	if err != nil {
		return nil, err
	}
	return result, e.Store.Move(ctx, ref, store.Change{From: rec.State, To: store.Finished, Fenced: true, Result: bytes, At: e.Now()})
}
