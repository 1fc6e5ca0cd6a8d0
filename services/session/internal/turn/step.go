package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// maxAttempts bounds the model calls of one step.
	maxAttempts = 8
	// maxBackoff bounds the wait between two of them when the provider gives no
	// time.
	maxBackoff = 30 * time.Second
	// maxRetryAfter is the longest wait that a provider may ask for.
	maxRetryAfter = 5 * time.Minute
)

// step calls the model until it answers, and commits the answer.
func (w *Worker) step(ctx, parent context.Context) error {
	t := w.Active
	if err := w.checkLimits(parent); err != nil || w.Active != t {
		return err
	}
	resolved, err := w.Resolve(w.Spec.Model)
	if err != nil {
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED, fmt.Sprintf("The agent's model cannot be used: %v.", err))
	}
	tools, err := w.modelTools(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the loop sees why
		}
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE, "The list of tools could not be read: "+state.Explain(err)+" Check that the tools service runs, then send the message again.")
	}
	sc, span := w.deps.Telemetry.StartStep(w.scope(ctx, parent))
	defer span.End()
	ctx = sc.Context
	if err := w.compactIfFull(ctx, parent, resolved, tools); err != nil || ctx.Err() != nil || w.Active != t || t.Waiting() {
		return err
	}
	for {
		done, err := w.attempt(ctx, parent, resolved, tools)
		if err != nil || done {
			return err
		}
	}
}

// checkLimits ends the turn if it may make no more model calls.
func (w *Worker) checkLimits(parent context.Context) error {
	t := w.Active
	switch l := t.Proto.Limits; {
	case t.Proto.Steps-t.Run.TodoSteps >= l.GetMaxSteps():
		return w.partial(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MAX_STEPS,
			fmt.Sprintf("The turn made %d model calls, as many as it may. Send another message to let the agent go on, or allow more with limits.max_steps.", t.Proto.Steps-t.Run.TodoSteps))
	case w.Active.TokensLeft() <= 0:
		return w.outputLimit(parent, store.Write{})
	default:
		return nil
	}
}

func (w *Worker) outputLimit(parent context.Context, write store.Write) error {
	return w.partial(parent, write, sessionv1.ErrorReason_ERROR_REASON_MAX_OUTPUT_TOKENS,
		"The model produced as many tokens as it may. Send another message to let the agent go on, or allow more with limits.max_output_tokens.")
}

// attempt makes one model call. It reports whether the step is done: the model
// has answered, or the turn must stop, which the loop finds out.
func (w *Worker) attempt(ctx, parent context.Context, resolved state.Resolved, tools []model.Tool) (bool, error) {
	t := w.Active
	request := w.request(resolved, tools)
	var out state.Outcome
	var err error
	if request.MaxOutputTokens, out, err = w.spend.Reserve(w.scope(ctx, parent), resolved, request); err != nil || !out.GoesOn() {
		return true, cmp.Or(err, w.apply(parent, out))
	}
	if err := w.beginAttempt(ctx, resolved); err != nil {
		return true, w.unlessStopped(ctx, err)
	}
	answer := newAnswer(w, w.maxAnswerBytes(resolved))
	resp, err := w.stream(ctx, resolved, request, answer)
	if failure := w.Log.Err(); failure != nil {
		return true, failure
	}
	var failed *model.Error
	switch {
	case err == nil:
		return true, w.commitAnswer(parent, resolved, resp)
	case parent.Err() != nil:
		return true, context.Cause(parent)
	case errors.Is(err, errAnswerTooLong):
		return true, w.commitPartial(answer, func(write store.Write) error { return w.outputLimit(parent, write) })
	case ctx.Err() != nil:
		return true, w.commitPartial(answer, func(write store.Write) error { return w.stopWith(parent, write, context.Cause(ctx)) })
	case errors.As(err, &failed) && failed.Retryable() && t.Run.Attempt < maxAttempts && failed.RetryAfter <= maxRetryAfter:
		return false, w.unlessStopped(ctx, w.backoff(ctx, parent, failed))
	case errors.As(err, &failed) && failed.Kind == model.ContextFull:
		shorter, e := w.contextFull(ctx, parent, resolved)
		if e != nil || shorter || ctx.Err() != nil || w.Active != t || t.Waiting() {
			return !shorter, e
		}
		return true, w.failModel(parent, store.Write{}, err)
	case failed != nil:
		return refused(parent, w, answer, failed)
	default:
		return true, w.commitPartial(answer, func(write store.Write) error { return w.failModel(parent, write, err) })
	}
}

// unlessStopped drops an error that only says that the turn was stopped: the
// loop handles the stop.
func (w *Worker) unlessStopped(ctx context.Context, err error) error {
	if w.Log.Err() != nil || ctx.Err() == nil {
		return err
	}
	return nil
}

// beginAttempt starts an attempt.
func (w *Worker) beginAttempt(ctx context.Context, resolved state.Resolved) error {
	t := w.Active
	n := w.Active.Step()
	t.Run.Attempt++
	t.Run.StepSeq = w.Log.Seq() + 1
	t.Run.Began = t.Run.StepSeq
	started := w.Event(n, &sessionv1.Event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{
		Model: resolved.Provider + ":" + resolved.Name, Attempt: int32(t.Run.Attempt),
	}}})
	err := w.Log.Append(ctx, store.Write{Events: []*sessionv1.Event{started}, Turns: []*store.TurnRow{t.Row()}})
	if err != nil {
		t.Run.StepSeq = 0 // no event of this attempt is logged yet
	}
	return err
}

// voidStep returns the write that voids the events of an attempt; it is empty
// when there are none. It must be the next write: its range ends at the log's
// end and must not include the events of others.
func (w *Worker) voidStep() store.Write {
	t := w.Active
	if t.Run.StepSeq == 0 {
		return store.Write{}
	}
	restarted := w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{
		VoidFirstSeq: t.Run.StepSeq, VoidLastSeq: w.Log.Seq(), Reason: restartReason(t.Run.Attempt),
	}}})
	t.Run.StepSeq = 0
	return store.Write{Events: []*sessionv1.Event{restarted}, Turns: []*store.TurnRow{t.Row()}}
}

func restartReason(attempt int) string {
	return fmt.Sprintf("Attempt %d of this step broke off; what it had produced does not count.", attempt)
}

// backoff logs the error, voids the partial answer, and waits as long as the
// provider asks.
func (w *Worker) backoff(ctx, parent context.Context, failed *model.Error) error {
	wait := failed.RetryAfter
	if wait == 0 {
		wait = min(500*time.Millisecond<<(w.Active.Run.Attempt-1), maxBackoff)
		wait -= time.Duration(rand.Int64N(int64(wait)/4 + 1)) //nolint:gosec // jitter needs no secrecy
	}
	w.deps.Telemetry.Retried(ctx)
	write := w.voidStep()
	write.Events = append([]*sessionv1.Event{w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
		Reason:  "MODEL_RETRY",
		Message: fmt.Sprintf("%v. Trying again in %v (attempt %d of %d).", failed, wait.Round(time.Millisecond), w.Active.Run.Attempt+1, maxAttempts),
	}}})}, write.Events...)
	if err := w.Log.Append(parent, write); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxAnswerBytes generously bounds an answer that never ends.
func (w *Worker) maxAnswerBytes(r state.Resolved) int64 {
	return 64<<10 + 32*min(w.Active.TokensLeft(), max(r.MaxOutputTokens, 4096))
}

// request returns the next request to the model.
func (w *Worker) request(r state.Resolved, tools []model.Tool) model.Request {
	limit := w.Active.TokensLeft()
	if r.MaxOutputTokens > 0 {
		limit = min(limit, r.MaxOutputTokens)
	}
	return model.Request{
		Model: r.Name, System: w.SystemPrompt(), Messages: w.View(w.Path), Tools: tools,
		MaxOutputTokens: limit, ThinkingTokens: r.ThinkingTokens,
		Step: int(w.Active.Step()), Attempt: w.Active.Run.Attempt + 1,
	}
}

// stream makes the model call.
func (w *Worker) stream(ctx context.Context, r state.Resolved, request model.Request, a *partialAnswer) (*model.Response, error) {
	return w.deps.Telemetry.ModelCall(w.scope(ctx, ctx), r, w.Active.Run.Attempt, "", func(sc state.Scope) (*model.Response, error) {
		w.spend.ModelAsked()
		resp, err := r.Model.Stream(sc, request, func(d model.Delta) error { return a.add(sc, d) })
		w.spend.ModelAnswered(err)
		return resp, err
	})
}

// commitAnswer commits the assistant's message. A message without tool calls
// ends the turn in the same write.
func (w *Worker) commitAnswer(parent context.Context, r state.Resolved, resp *model.Response) error {
	t := w.Active
	n := w.Active.Step()
	for i, u := range state.ToolUsesOf(resp.Blocks) {
		u.CallId, u.ArgumentsJson = state.CallID(t.ID, n, i), schema.Plain(u.ArgumentsJson)
	}
	usage := resp.Usage
	if usage == nil {
		usage = &sessionv1.Usage{}
	}
	usage.CostNanoUsd = r.Cost(usage)
	eventlog.AddUsage(ensureUsage(&t.Proto.Usage), usage)
	write := store.Write{AddUsage: usage, StepCommitted: true}
	w.spend.Settle(t, &write, believed(w, &write, resp))
	if len(resp.Blocks) == 0 {
		// An assistant message must not be empty; an empty answer ends the turn.
		resp.Blocks = []*sessionv1.Block{state.TextBlock("(The model gave no answer.)")}
	}
	message := w.NewMessage(sessionv1.Role_ROLE_ASSISTANT, n, resp.Blocks)
	w.AddMessage(&write, message)
	w.count(message, usage)
	t.ClearStep()
	w.RecordProgress()
	end := &sessionv1.StepFinished{StopReason: resp.StopReason, Usage: usage, Message: message.Name}
	if len(state.ToolUses(message)) > 0 {
		// step.finished follows the calls; the message is synced before any of them starts.
		var err error
		if t.Run.Finished, err = proto.Marshal(end); err != nil {
			return fmt.Errorf("marshal the end of step %d: %w", n, err)
		}
		w.answered, w.begun = message.Name, map[string]bool{}
		if err := refuseCut(w, &write, resp); err != nil {
			return err
		}
		write.Turns = []*store.TurnRow{t.Row()}
		return w.Log.Commit(parent, write)
	}
	write.Events = append(write.Events, w.Event(n, &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: end}}))
	t.Proto.Steps = n
	switch resp.StopReason {
	case "max_tokens":
		if d := w.spend.Lowered(); d != nil {
			return w.apply(parent, spend.Exhausted(write, d))
		}
		return w.outputLimit(parent, write)
	case "refusal":
		return w.finish(parent, write, sessionv1.TurnState_TURN_STATE_FAILED, state.TurnError(sessionv1.ErrorReason_ERROR_REASON_MODEL_REFUSAL,
			"The model refused to answer. Say it in another way, or begin a new session."))
	default:
		if w.steerComes(parent) {
			write.Turns = []*store.TurnRow{t.Row()}
			return w.Log.Commit(parent, write) // the loop takes the message in, or ends the turn
		}
		return w.conclude(parent, write)
	}
}

// commitPartial keeps the text of an answer that was cut off, so that the
// transcript is well-formed and has what people saw. Then it ends the turn.
func (w *Worker) commitPartial(a *partialAnswer, end func(store.Write) error) error {
	write := store.Write{Events: a.close()}
	if blocks := a.text(); len(blocks) > 0 {
		w.AddMessage(&write, w.NewMessage(sessionv1.Role_ROLE_ASSISTANT, w.Active.Step(), blocks))
	}
	return end(write)
}

// failModel ends the turn because of its model.
func (w *Worker) failModel(parent context.Context, write store.Write, err error) error {
	reason := sessionv1.ErrorReason_ERROR_REASON_MODEL_UNAVAILABLE
	message := err.Error()
	var failed *model.Error
	if errors.As(err, &failed) {
		switch failed.Kind {
		case model.Authentication:
			reason = sessionv1.ErrorReason_ERROR_REASON_MODEL_AUTHENTICATION
		case model.Refused, model.Billing:
			reason = sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED
		case model.ContextFull:
			reason = sessionv1.ErrorReason_ERROR_REASON_CONTEXT_FULL
			message = "The model's context is too small even for the last message alone, with the agent's prompt and tools: " + message + ". Use a model with a larger context, or an agent with fewer tools."
		case model.Unavailable:
			message = fmt.Sprintf("%s. Gave up after %d attempts; send the message again later.", message, w.Active.Run.Attempt)
		}
	}
	w.Logger.WarnContext(parent, "the model failed", "session", w.Lease.Session, "turn", w.Active.ID, "error", err)
	return w.fail(parent, write, reason, message)
}
