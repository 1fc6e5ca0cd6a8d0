package call

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// recordTimeout bounds the attempts to record a result while the database
	// cannot be reached. After that the call stays started, and a repeated
	// request gets the result from the sandbox.
	recordTimeout = 30 * time.Second
	// finishedTimeout bounds the call of a tool's Finished.
	finishedTimeout = 2 * time.Second
)

// launch runs a registered call in a goroutine of the engine's.
func (a *attempt) launch(ctx context.Context, r *run) {
	span := a.span
	a.span = nil // the goroutine ends it
	runCtx := trace.ContextWithSpan(r.ctx, trace.SpanFromContext(ctx))
	go a.execute(runCtx, r, span) //nolint:contextcheck // the call outlives the request, whose values it keeps
}

// execute runs a call to its end and records the result.
func (e *Engine) execute(ctx context.Context, r *run, span trace.Span) {
	e.observe.running(ctx, r.tool.Name, 1)
	defer e.observe.running(ctx, r.tool.Name, -1)
	begin := e.Now()
	result, err := e.perform(ctx, r)
	if asking := (*tool.AskingError)(nil); errors.As(err, &asking) {
		err = e.park(ctx, r, asking)
		endSpan(span, err)
		e.settle(r, nil, err)
		return
	}
	if err == nil {
		result.DurationMs = max(0, e.Now().Sub(begin).Milliseconds())
		err = e.record(ctx, r, result)
	}
	if err == nil {
		e.observe.ended(ctx, span, r.tool.Name, result)
		e.finished(ctx, r, result)
	} else {
		e.Log.WarnContext(ctx, "call let go before its end", "tool", r.tool.Name, "call", r.ref.CallID, "error", err.Error())
	}
	endSpan(span, err)
	e.settle(r, result, err)
}

// perform runs the tool, and again under a newer epoch when the session was
// taken over meanwhile.
func (e *Engine) perform(ctx context.Context, r *run) (*tool.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Limits.Duration)
	defer cancel()
	for again := false; ; {
		c := r.call
		c.Epoch = r.epoch.Load()
		result, err := e.guarded(ctx, r, c)
		switch {
		case errors.Is(err, tool.ErrStaleEpoch) && r.epoch.Load() > c.Epoch:
			continue
		case result.GetOutcome() == toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN && r.tool.Idempotent && !again:
			again = true // repeating it is safe
			continue
		case errors.Is(err, tool.ErrPlaceLost):
			return lostPlace(), nil
		case err == nil:
			return result, nil
		case errors.Is(err, tool.ErrCancelled):
			return cancelled(), nil
		case ctx.Err() == context.DeadlineExceeded && errors.Is(err, context.DeadlineExceeded):
			return tool.Failed(fmt.Sprintf("The call took longer than a call may (%s) and was stopped.", e.Limits.Duration)), nil
		default:
			return nil, err
		}
	}
}

// guarded keeps a panic of one tool from ending the process with all calls.
func (e *Engine) guarded(ctx context.Context, r *run, c tool.Call) (result *tool.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			e.Log.ErrorContext(ctx, "tool panicked", "tool", r.tool.Name, "panic", fmt.Sprint(fault), "stack", string(debug.Stack()))
			result, err = tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN,
				"The tool failed inside, and how the call ended is not known. It may have taken effect: check before repeating it."), nil
		}
	}()
	return r.tool.Runner.Run(ctx, c, r)
}

// record journals a result. ErrConflict says that another result was recorded
// meanwhile.
func (e *Engine) record(ctx context.Context, r *run, result *tool.Result) error {
	bytes, err := encode(result)
	if err != nil {
		return err
	}
	to := store.Finished
	if result.GetOutcome() == toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED {
		to = store.Cancelled
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := e.Store.Move(writing, r.ref, store.Change{
			From: store.Started, To: to, Claim: r.claim.Load(), Result: bytes, At: e.Now(), Operation: e.operation(ctx, r, result),
		})
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
			continue
		case <-writing.Done():
		case <-ctx.Done():
		}
		t.Stop()
		return err
	}
}

// operation returns the operation that begins with a result, if the call hands
// one back.
func (e *Engine) operation(ctx context.Context, r *run, result *tool.Result) *store.NewOperation {
	if result.GetOperation() == "" {
		return nil
	}
	p, _ := principal.From(ctx)
	return &store.NewOperation{User: p.User, Tool: r.tool.Name, Progress: r.lastProgress(), TTL: e.OperationTTL}
}

// finished tells the tool that it may forget a call. If that fails, the data
// goes with the session's workspace at the latest.
func (e *Engine) finished(ctx context.Context, r *run, result *tool.Result) {
	if result.GetOperation() != "" {
		e.Begun() // the command of the call keeps running
		return
	}
	f, ok := r.tool.Runner.(tool.Finisher)
	if !ok || result.GetOutcome() == toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishedTimeout)
	defer cancel()
	c := r.call
	c.Epoch = r.epoch.Load()
	if err := f.Finished(ctx, c); err != nil {
		e.Log.WarnContext(ctx, "finished call not acknowledged", "tool", r.tool.Name, "call", r.ref.CallID, "error", err.Error())
	}
}
