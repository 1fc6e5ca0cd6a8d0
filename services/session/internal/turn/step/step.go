// Package step makes the steps of a turn: a model call with its retries, and the commit of the
// answer. A step with calls ends when the model gets their results.
package step

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/compact"
	"github.com/fairlead/fairlead/services/session/internal/turn/inbox"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
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

// Stepper makes the steps of one session's turns.
type Stepper struct {
	Telemetry telemetry.Telemetry
	Tools     *toolset.Toolset
	Inbox     *inbox.Inbox
	Spend     *spend.Spend
	Calls     *calls.Calls
	Compactor *compact.Compactor
	// Runtimes are those besides the native one, by name.
	Runtimes map[string]Runtime
	// Expect is called as soon as the model begins to ask for a call.
	Expect func()

	malformed string // the step's last attempt, if its stream did not follow the API
}

// Run calls the model until it answers, and commits the answer.
func (s *Stepper) Run(sc state.Scope) (state.Outcome, error) {
	if out := checkLimits(sc.Active); !out.GoesOn() {
		return out, nil
	}
	resolved, err := sc.ResolveModel()
	if err != nil {
		return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED, fmt.Sprintf("The agent's model cannot be used: %v.", err)), nil
	}
	tools, err := s.Tools.List(sc)
	if err != nil {
		if sc.Ended() {
			return state.Stopped(), nil // the loop finds the cause
		}
		if failure := sc.Log.Err(); failure != nil {
			return state.Outcome{}, failure
		}
		var missing *toolset.UnavailableError
		if errors.As(err, &missing) {
			return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE, missing.Error()), nil
		}
		return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The list of tools could not be read: "+state.Explain(err)+" Check that the tools service runs, then send the message again."), nil
	}
	if out := s.Spend.CheckPrice(sc, resolved); !out.GoesOn() {
		return out, nil
	}
	sc, span := s.Telemetry.StartStep(sc)
	defer span.End()
	if out, err := s.Compactor.IfFull(sc, resolved, tools); err != nil || !out.GoesOn() {
		return out, err
	}
	if sc.Ended() {
		return state.Stopped(), nil
	}
	for {
		r, err := inTurn(sc, resolved)
		if err != nil {
			return state.Failed(VoidAttempt(sc.Session), sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED, fmt.Sprintf("The model's fallback cannot be used: %v.", err)), nil
		}
		if out := s.Spend.CheckPrice(sc, r); !out.GoesOn() {
			return out, nil
		}
		again, out, err := s.attempt(sc, r, tools)
		if err != nil || !again {
			return out, err
		}
	}
}

// checkLimits ends the turn if it may make no more model calls.
func checkLimits(t *state.Turn) state.Outcome {
	switch {
	case t.StepsCounted() >= t.Proto.Limits.GetMaxSteps():
		return state.Partial(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MAX_STEPS,
			fmt.Sprintf("The turn reached its limit of %d model calls. Send another message to let the agent continue, or allow more with limits.max_steps.", t.StepsCounted()))
	case t.TokensLeft() <= 0:
		return outputLimit(store.Write{})
	default:
		return state.Outcome{}
	}
}

func outputLimit(write store.Write) state.Outcome {
	return state.Partial(write, sessionv1.ErrorReason_ERROR_REASON_MAX_OUTPUT_TOKENS,
		"The turn reached its limit of output tokens. Send another message to let the agent continue, or allow more with limits.max_output_tokens.")
}

// attempt makes one model call. It reports whether the step needs another one.
func (s *Stepper) attempt(sc state.Scope, r state.Resolved, tools []model.Tool) (again bool, _ state.Outcome, _ error) {
	runtime, out := s.runtime(sc.RuntimeName())
	if !out.GoesOn() {
		return false, out, nil
	}
	next, r, out, err := s.compose(sc, runtime, r, newRequest(sc, r, tools))
	if err != nil || !out.GoesOn() {
		return false, out, err
	}
	limit, out, err := s.Spend.Reserve(sc, r, next.Request)
	if err != nil || !out.GoesOn() {
		return false, out, err
	}
	next.Request.MaxOutputTokens = limit
	if err := beginAttempt(sc, r); err != nil {
		return false, state.Stopped(), unlessStopped(sc, err)
	}
	answer := newAnswer(sc, maxAnswerBytes(sc.Active, r))
	resp, err := s.stream(sc, r, next, answer)
	if failure := sc.Log.Err(); failure != nil {
		return false, state.Outcome{}, failure
	}
	if err == nil {
		runtime.Answer(sc, resp)
		out, err := s.commitAnswer(sc, r, next, resp)
		return false, out, err
	}
	if failure := sc.WorkerErr(); failure != nil {
		return false, state.Outcome{}, failure
	}
	return s.failed(sc, r, next, answer, err)
}

// failed decides what follows a model call that failed.
func (s *Stepper) failed(sc state.Scope, r state.Resolved, next Next, answer *partialAnswer, err error) (again bool, _ state.Outcome, _ error) {
	t := sc.Active
	var failed *model.Error
	var lost *LostError
	switch {
	case errors.Is(err, errAnswerTooLong):
		return false, outputLimit(s.keep(sc, r, next, answer)), nil
	case sc.Ended():
		return false, state.Interrupted(s.keep(sc, r, next, answer), context.Cause(sc)), nil
	case errors.As(err, &lost):
		return true, state.Outcome{}, sc.Append(VoidAttempt(sc.Session)) // Compose warns of it
	case errors.As(err, &failed) && failed.Retryable() && t.Run.Attempt < lastAttempt(sc, r) && failed.RetryAfter <= maxRetryAfter && !s.again(sc, r, failed):
		if err := s.backoff(sc, failed); err != nil {
			return false, state.Stopped(), unlessStopped(sc, err)
		}
		return true, state.Outcome{}, nil
	case failed != nil && failed.Retryable() && place(t.Run.Attempt-1, r) < len(r.Fallbacks):
		if err := s.fallBack(sc, r, failed); err != nil {
			return false, state.Stopped(), unlessStopped(sc, err)
		}
		return true, state.Outcome{}, nil
	case errors.As(err, &failed) && failed.Kind == model.ContextFull:
		if write := VoidAttempt(sc.Session); len(write.Events) > 0 {
			if err := sc.Append(write); err != nil {
				return false, state.Outcome{}, err
			}
		}
		shorter, out, e := s.Compactor.Halve(sc, r)
		switch {
		case e != nil || shorter || !out.GoesOn():
			return shorter, out, e
		case sc.Ended():
			return false, state.Stopped(), nil
		}
		return false, modelFailed(sc, store.Write{}, err), nil
	case failed != nil:
		return refused(sc, answer, failed)
	default:
		return false, modelFailed(sc, s.keep(sc, r, next, answer), err), nil
	}
}

// again reports whether the model's last attempt of this step failed in the same way, by a stream that does not
// follow the API. What a server does twice is not tried a third time.
func (s *Stepper) again(sc state.Scope, r state.Resolved, failed *model.Error) bool {
	before := s.malformed
	s.malformed = ""
	if failed.Malformed {
		s.malformed = fmt.Sprintf("%s %d %s:%s %s", sc.Active.ID, sc.Active.Step(), r.Provider, r.Name, failed.Message)
	}
	return failed.Malformed && s.malformed == before
}

// unlessStopped drops an error that only says that the turn was stopped: the loop handles the
// stop.
func unlessStopped(sc state.Scope, err error) error {
	if sc.Log.Err() != nil || !sc.Ended() {
		return err
	}
	return nil
}

// beginAttempt starts an attempt.
func beginAttempt(sc state.Scope, r state.Resolved) error {
	t := sc.Active
	t.Run.Attempt++
	t.Run.StepSeq = sc.Log.Seq() + 1
	t.Run.Began = t.Run.StepSeq
	started := sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{
		Model: r.Provider + ":" + r.Name, Attempt: int32(t.Run.Attempt),
	}}})
	err := sc.Emit(store.Write{Events: []*sessionv1.Event{started}, Turns: []*store.TurnRow{t.Row()}})
	if err != nil {
		t.Run.StepSeq = 0 // no event of this attempt is logged yet
	}
	return err
}

// VoidAttempt returns the write that voids the events of an attempt; it is empty when there are
// none. It must be the next write: its range ends at the log's end and must not include the
// events of others.
func VoidAttempt(s *state.Session) store.Write {
	t := s.Active
	if t.Run.StepSeq == 0 {
		return store.Write{}
	}
	restarted := s.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{
		VoidFirstSeq: t.Run.StepSeq, VoidLastSeq: s.Log.Seq(),
		Reason: fmt.Sprintf("Attempt %d of this step failed; its output does not count.", t.Run.Attempt),
	}}})
	t.Run.StepSeq = 0
	return store.Write{Events: []*sessionv1.Event{restarted}, Turns: []*store.TurnRow{t.Row()}}
}

// backoff logs the error, voids the partial answer, and waits as long as the provider asks.
func (s *Stepper) backoff(sc state.Scope, failed *model.Error) error {
	attempt := (sc.Active.Run.Attempt-1)%maxAttempts + 1
	wait := failed.RetryAfter
	if wait == 0 {
		wait = min(500*time.Millisecond<<(attempt-1), maxBackoff)
		wait -= time.Duration(rand.Int64N(int64(wait)/4 + 1)) //nolint:gosec // jitter needs no secrecy
	}
	s.Telemetry.Retried(sc)
	write := VoidAttempt(sc.Session)
	write.Events = append([]*sessionv1.Event{sc.StepEvent(state.Warning("MODEL_RETRY",
		fmt.Sprintf("%v. Trying again in %v (attempt %d of %d).", failed, wait.Round(time.Millisecond), attempt+1, maxAttempts)))}, write.Events...)
	if err := sc.Append(write); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-sc.Done():
		return context.Cause(sc)
	}
}

// maxAnswerBytes generously bounds an answer that never ends.
func maxAnswerBytes(t *state.Turn, r state.Resolved) int64 {
	return 64<<10 + 32*min(t.TokensLeft(), max(r.MaxOutputTokens, 4096))
}

// newRequest returns the next request to the model.
func newRequest(sc state.Scope, r state.Resolved, tools []model.Tool) model.Request {
	limit := sc.Active.TokensLeft()
	if r.MaxOutputTokens > 0 {
		limit = min(limit, r.MaxOutputTokens)
	}
	return model.Request{
		Model: r.Name, System: sc.SystemPrompt(), Messages: sc.View(sc.Path), Tools: tools,
		MaxOutputTokens: limit, ThinkingTokens: r.ThinkingTokens, Temperature: r.Temperature, TopP: r.TopP,
		Step: int(sc.Active.Step()), Attempt: sc.Active.Run.Attempt + 1,
	}
}

// stream makes the model call.
func (s *Stepper) stream(sc state.Scope, r state.Resolved, next Next, a *partialAnswer) (*model.Response, error) {
	return s.Telemetry.ModelCall(sc, r, sc.Active.Run.Attempt, "", func(sc state.Scope) (*model.Response, error) {
		s.Spend.ModelAsked()
		ctx := context.Context(sc) // once for all pieces
		resp, err := r.Model.Stream(ctx, next.Request, func(d model.Delta) error {
			if d.Kind == model.ToolUseStart {
				s.Expect()
			}
			if next.Watch != nil {
				next.Watch(d)
			}
			return a.add(ctx, d)
		})
		s.Spend.ModelAnswered(err)
		return resp, err
	})
}

// modelFailed ends the turn because of its model.
func modelFailed(sc state.Scope, write store.Write, err error) state.Outcome {
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
			if failed.Malformed {
				message = fmt.Sprintf("%s. Gave up after %d attempts, because the server sends it each time; choose another model, or have the server mended.", message, sc.Active.Run.Attempt)
				break
			}
			message = fmt.Sprintf("%s. Gave up after %d attempts; send the message again later.", message, sc.Active.Run.Attempt)
		}
	}
	sc.Logger.WarnContext(sc.Outlasting(), "the model failed", "session", sc.Lease.Session, "turn", sc.Active.ID, "error", err)
	return state.Failed(write, reason, message)
}
