package call

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Report records the result of a call that was delegated to the caller.
// Reporting the same result again changes nothing; another result is
// ErrIDReused.
func (e *Engine) Report(ctx context.Context, ref store.Ref, result *tool.Result) error {
	return e.retry(ctx, ref, func(rec store.Record) error {
		switch {
		case rec.State == store.None:
			return ErrNotFound
		case rec.Session != ref.Session:
			return ErrIDReused
		case rec.State == store.Cancelled:
			return ErrCallCancelled
		case !rec.Handed:
			return ErrNotDelegated
		case rec.State == store.Finished:
			return sameResult(rec.Result, result)
		}
		bytes, err := encode(result)
		if err != nil {
			return err
		}
		err = e.Store.Move(ctx, ref, store.Change{From: rec.State, To: store.Finished, Fenced: true, Result: bytes, At: e.Now()})
		if err == nil {
			e.observe.ended(ctx, nil, rec.Tool, result)
		}
		return err
	})
}

// sameResult compares results without the duration, which differs when the
// caller repeats its work after a crash.
func sameResult(recorded []byte, result *tool.Result) error {
	was, err := decode(recorded)
	if err != nil {
		return err
	}
	was.DurationMs = result.GetDurationMs()
	if !proto.Equal(was, result) {
		return ErrIDReused
	}
	return nil
}

// Cancel stops a call, or leaves a mark that keeps it from starting, and returns
// its recorded result. The call's effects have ended then. A forwarded request is
// not forwarded again.
func (e *Engine) Cancel(ctx context.Context, ref store.Ref, forwarded bool) (result *tool.Result, err error) {
	err = e.retry(ctx, ref, func(rec store.Record) error {
		if rec.State != store.None && rec.Session != ref.Session {
			return ErrIDReused
		}
		switch rec.State {
		case store.Finished:
			result, err = decode(rec.Result)
			return err
		case store.Cancelled:
			if result, err = decode(rec.Result); err != nil {
				return err
			}
			return e.stop(ctx, ref, rec)
		case store.Started:
			if placeLost(rec, ref) {
				result, err = e.cancelLost(ctx, ref, rec, forwarded)
				return err
			}
			if r := e.find(ref); r != nil {
				return e.interrupt(ctx, ref, r)
			}
			if !forwarded && e.isElsewhere(rec) {
				// If the replica cannot be reached, the call is stopped in the
				// sandbox.
				if result, err = e.Peers.Cancel(ctx, rec.Owner.Address, ref); !errors.Is(err, ErrReplicaUnavailable) {
					return err
				}
			}
			if err := e.stop(ctx, ref, rec); err != nil {
				return err
			}
		}
		result = cancelled()
		bytes, err := encode(result)
		if err != nil {
			return err
		}
		return e.Store.Move(ctx, ref, store.Change{From: rec.State, To: store.Cancelled, Fenced: true, Result: bytes, At: e.Now()})
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// interrupt stops a call that runs here and waits for its end, which is then
// read from the journal.
func (e *Engine) interrupt(ctx context.Context, ref store.Ref, r *run) error {
	r.raise(ref.Epoch)
	r.cancel(tool.ErrCancelled)
	if err := r.wait(ctx); err != nil {
		return err
	}
	if r.err != nil && !lost(r.err) {
		return r.err
	}
	return store.ErrConflict
}

// stop stops a call that does not run in this process but may still run in the
// sandbox.
func (e *Engine) stop(ctx context.Context, ref store.Ref, rec store.Record) error {
	t, ok := e.Tools.Get(rec.Tool)
	if !ok {
		return nil
	}
	c, ok := t.Runner.(tool.Canceller)
	if !ok {
		return nil
	}
	return c.Cancel(ctx, tool.Call{
		Session: ref.Session, Holder: ref.Holder, Epoch: ref.Epoch, ID: ref.CallID, Node: rec.Node, WorkspaceGeneration: rec.Generation,
	})
}

// outcome names an outcome in traces and metrics.
func outcome(r *tool.Result) string {
	switch r.GetOutcome() {
	case toolsv1.CallOutcome_CALL_OUTCOME_OK:
		return "ok"
	case toolsv1.CallOutcome_CALL_OUTCOME_ERROR:
		return "error"
	case toolsv1.CallOutcome_CALL_OUTCOME_DENIED:
		return "denied"
	case toolsv1.CallOutcome_CALL_OUTCOME_REFUSED:
		return "refused"
	case toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED:
		return "cancelled"
	default:
		return "unknown"
	}
}
