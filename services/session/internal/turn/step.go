package turn

import (
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

// stepNumber returns the number of the current step, from 1.
func (w *Worker) stepNumber() int32 { return w.active.turn.Steps + 1 }

// step calls the model until it answers, and commits the answer.
func (w *Worker) step(ctx, parent context.Context) error {
	t := w.active
	if err := w.checkLimits(parent); err != nil || w.active != t {
		return err
	}
	resolved, err := w.deps.Resolve(w.spec.Model)
	if err != nil {
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED, fmt.Sprintf("The agent's model cannot be used: %v.", err))
	}
	tools, err := w.modelTools(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the loop sees why
		}
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE, "The list of tools could not be read: "+explain(err)+" Check that the tools service runs, then send the message again.")
	}
	ctx, span := w.startStepSpan(ctx)
	defer span.End()
	if err := w.compactIfFull(ctx, parent, resolved, tools); err != nil || ctx.Err() != nil || w.active != t || t.waiting() {
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
	t := w.active
	switch l := t.turn.Limits; {
	case t.turn.Steps-t.run.TodoSteps >= l.GetMaxSteps():
		return w.partial(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MAX_STEPS,
			fmt.Sprintf("The turn made %d model calls, as many as it may. Send another message to let the agent go on, or allow more with limits.max_steps.", t.turn.Steps-t.run.TodoSteps))
	case w.tokensLeft() <= 0:
		return w.outputLimit(parent, store.Write{})
	default:
		return nil
	}
}

// mayStep reports whether the turn's limits allow another step.
func (w *Worker) mayStep() bool {
	return w.active.turn.Steps-w.active.run.TodoSteps < w.active.turn.Limits.GetMaxSteps() && w.tokensLeft() > 0
}

func (w *Worker) tokensLeft() int64 {
	return w.active.turn.Limits.GetMaxOutputTokens() - w.active.turn.GetUsage().GetOutputTokens()
}

func (w *Worker) outputLimit(parent context.Context, write store.Write) error {
	return w.partial(parent, write, sessionv1.ErrorReason_ERROR_REASON_MAX_OUTPUT_TOKENS,
		"The model produced as many tokens as it may. Send another message to let the agent go on, or allow more with limits.max_output_tokens.")
}

// attempt makes one model call. It reports whether the step is done: the model
// has answered, or the turn must stop, which the loop finds out.
func (w *Worker) attempt(ctx, parent context.Context, resolved Resolved, tools []model.Tool) (bool, error) {
	t := w.active
	request := w.request(resolved, tools)
	var ok bool
	var err error
	if request.MaxOutputTokens, ok, err = w.reserve(ctx, parent, resolved, request); err != nil || !ok {
		return true, err
	}
	if err := w.beginAttempt(ctx, resolved); err != nil {
		return true, w.unlessStopped(ctx, err)
	}
	answer := newAnswer(w, w.maxAnswerBytes(resolved))
	resp, err := w.stream(ctx, resolved, request, answer)
	if failure := w.log.Err(); failure != nil {
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
	case errors.As(err, &failed) && failed.Retryable() && t.run.Attempt < maxAttempts && failed.RetryAfter <= maxRetryAfter:
		return false, w.unlessStopped(ctx, w.backoff(ctx, parent, failed))
	case errors.As(err, &failed) && failed.Kind == model.ContextFull:
		shorter, e := w.contextFull(ctx, parent, resolved)
		if e != nil || shorter || ctx.Err() != nil || w.active != t || t.waiting() {
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
	if w.log.Err() != nil || ctx.Err() == nil {
		return err
	}
	return nil
}

// beginAttempt starts an attempt.
func (w *Worker) beginAttempt(ctx context.Context, resolved Resolved) error {
	t := w.active
	n := w.stepNumber()
	t.run.Attempt++
	t.run.StepSeq = w.log.Seq() + 1
	t.run.Began = t.run.StepSeq
	started := w.event(n, &sessionv1.Event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{
		Model: resolved.Provider + ":" + resolved.Name, Attempt: int32(t.run.Attempt),
	}}})
	err := w.log.Append(ctx, store.Write{Events: []*sessionv1.Event{started}, Turns: []*store.TurnRow{t.row()}})
	if err != nil {
		t.run.StepSeq = 0 // no event of this attempt is logged yet
	}
	return err
}

// voidStep returns the write that voids the events of an attempt; it is empty
// when there are none. It must be the next write: its range ends at the log's
// end and must not include the events of others.
func (w *Worker) voidStep() store.Write {
	t := w.active
	if t.run.StepSeq == 0 {
		return store.Write{}
	}
	restarted := w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{
		VoidFirstSeq: t.run.StepSeq, VoidLastSeq: w.log.Seq(), Reason: restartReason(t.run.Attempt),
	}}})
	t.run.StepSeq = 0
	return store.Write{Events: []*sessionv1.Event{restarted}, Turns: []*store.TurnRow{t.row()}}
}

func restartReason(attempt int) string {
	return fmt.Sprintf("Attempt %d of this step broke off; what it had produced does not count.", attempt)
}

// backoff logs the error, voids the partial answer, and waits as long as the
// provider asks.
func (w *Worker) backoff(ctx, parent context.Context, failed *model.Error) error {
	wait := failed.RetryAfter
	if wait == 0 {
		wait = min(500*time.Millisecond<<(w.active.run.Attempt-1), maxBackoff)
		wait -= time.Duration(rand.Int64N(int64(wait)/4 + 1)) //nolint:gosec // jitter needs no secrecy
	}
	w.deps.Metrics.retried(ctx)
	write := w.voidStep()
	write.Events = append([]*sessionv1.Event{w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
		Reason:  "MODEL_RETRY",
		Message: fmt.Sprintf("%v. Trying again in %v (attempt %d of %d).", failed, wait.Round(time.Millisecond), w.active.run.Attempt+1, maxAttempts),
	}}})}, write.Events...)
	if err := w.log.Append(parent, write); err != nil {
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
func (w *Worker) maxAnswerBytes(r Resolved) int64 {
	return 64<<10 + 32*min(w.tokensLeft(), max(r.MaxOutputTokens, 4096))
}

// request returns the next request to the model.
func (w *Worker) request(r Resolved, tools []model.Tool) model.Request {
	limit := w.tokensLeft()
	if r.MaxOutputTokens > 0 {
		limit = min(limit, r.MaxOutputTokens)
	}
	return model.Request{
		Model: r.Name, System: w.system(), Messages: seen(w, w.path), Tools: tools,
		MaxOutputTokens: limit, ThinkingTokens: r.ThinkingTokens,
		Step: int(w.stepNumber()), Attempt: w.active.run.Attempt + 1,
	}
}

// stream makes the model call.
func (w *Worker) stream(ctx context.Context, r Resolved, request model.Request, a *partialAnswer) (*model.Response, error) {
	ctx, span := w.startModelSpan(ctx, r)
	defer span.End()
	begun := time.Now()
	w.modelAsked()
	resp, err := r.Model.Stream(ctx, request, func(d model.Delta) error { return a.add(ctx, d) })
	w.modelAnswered(err)
	w.endModelSpan(ctx, span, r, resp, err, time.Since(begun))
	return resp, err
}

// commitAnswer commits the assistant's message. A message without tool calls
// ends the turn in the same write.
func (w *Worker) commitAnswer(parent context.Context, r Resolved, resp *model.Response) error {
	t := w.active
	n := w.stepNumber()
	for i, u := range toolUsesOf(resp.Blocks) {
		u.CallId, u.ArgumentsJson = callID(t.id, n, i), schema.Plain(u.ArgumentsJson)
	}
	usage := resp.Usage
	if usage == nil {
		usage = &sessionv1.Usage{}
	}
	usage.CostNanoUsd = r.Cost(usage)
	eventlog.AddUsage(ensureUsage(&t.turn.Usage), usage)
	write := store.Write{AddUsage: usage, StepCommitted: true}
	w.settle(&write, believed(w, &write, resp))
	if len(resp.Blocks) == 0 {
		// An assistant message must not be empty; an empty answer ends the turn.
		resp.Blocks = []*sessionv1.Block{textBlock("(The model gave no answer.)")}
	}
	message := w.newMessage(sessionv1.Role_ROLE_ASSISTANT, n, resp.Blocks)
	w.addMessage(&write, message)
	w.count(message, usage)
	t.clearStep()
	w.further()
	end := &sessionv1.StepFinished{StopReason: resp.StopReason, Usage: usage, Message: message.Name}
	if len(toolUses(message)) > 0 {
		// step.finished follows the calls; the message is synced before any of them starts.
		var err error
		if t.run.Finished, err = proto.Marshal(end); err != nil {
			return fmt.Errorf("marshal the end of step %d: %w", n, err)
		}
		w.answered, w.begun = message.Name, map[string]bool{}
		if err := refuseCut(w, &write, resp); err != nil {
			return err
		}
		write.Turns = []*store.TurnRow{t.row()}
		return w.log.Commit(parent, write)
	}
	write.Events = append(write.Events, w.event(n, &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: end}}))
	t.turn.Steps = n
	switch resp.StopReason {
	case "max_tokens":
		if w.lowered != nil {
			return w.exhausted(parent, write, w.lowered)
		}
		return w.outputLimit(parent, write)
	case "refusal":
		return w.finish(parent, write, sessionv1.TurnState_TURN_STATE_FAILED, turnError(sessionv1.ErrorReason_ERROR_REASON_MODEL_REFUSAL,
			"The model refused to answer. Say it in another way, or begin a new session."))
	default:
		if w.steerComes(parent) {
			write.Turns = []*store.TurnRow{t.row()}
			return w.log.Commit(parent, write) // the loop takes the message in, or ends the turn
		}
		return w.conclude(parent, write)
	}
}

// commitPartial keeps the text of an answer that was cut off, so that the
// transcript is well-formed and has what people saw. Then it ends the turn.
func (w *Worker) commitPartial(a *partialAnswer, end func(store.Write) error) error {
	write := store.Write{Events: a.close()}
	if blocks := a.text(); len(blocks) > 0 {
		w.addMessage(&write, w.newMessage(sessionv1.Role_ROLE_ASSISTANT, w.stepNumber(), blocks))
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
			message = fmt.Sprintf("%s. Gave up after %d attempts; send the message again later.", message, w.active.run.Attempt)
		}
	}
	w.deps.Log.WarnContext(parent, "the model failed", "session", w.lease.Session, "turn", w.active.id, "error", err)
	return w.fail(parent, write, reason, message)
}
