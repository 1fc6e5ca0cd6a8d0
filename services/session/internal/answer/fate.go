package answer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Given is an answer to a call: an approval, an answer to a question or a result.
type Given struct {
	Session, Call, RequestID string
	Approval                 *sessionv1.ResolveApprovalRequest
	Question                 *sessionv1.AnswerQuestionRequest
	Result                   *sessionv1.SubmitToolResultRequest
}

// fate is the state of a call.
type fate struct {
	known    bool // the call exists
	ended    bool // the turn has ended
	digest   string
	resolved *sessionv1.ApprovalResolved
	answer   *sessionv1.QuestionResolved
	finished *sessionv1.ToolCallFinished
	user     string
	time     *timestamppb.Timestamp
}

// Refused says why the store refused an answer. It returns nil for an answer that
// was given before.
func (s *Checker) Refused(ctx context.Context, err error, g Given) error {
	if g.Question != nil && errors.Is(err, store.ErrDigestMismatch) {
		return refusal.QuestionMismatch(g.Call)
	}
	if !errors.Is(err, store.ErrCallNotWaiting) {
		return refusal.Store(err, refusal.Subject{Session: g.Session, Call: g.Call, RequestID: g.RequestID})
	}
	var f fate
	var before *store.AnsweredError
	if errors.As(err, &before) {
		f, err = fateOfCommand(before.Command)
	} else {
		f, err = s.fateOf(ctx, request.Key(ctx, g.Session), g.Call)
	}
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: g.Session})
	}
	return f.refuse(g)
}

// refuse says why the call does not take the answer; nil if it has the same answer
// already.
func (f fate) refuse(g Given) error {
	switch {
	case !f.known:
		return refusal.CallNotFound(g.Session, g.Call)
	case f.same(g):
		return nil
	case f.answer.GetExpired() || f.resolved.GetExpired() || f.finished.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED:
		return refusal.CallEnded(g.Call, "the time for an answer ran out")
	case g.Approval != nil && f.resolved != nil:
		return f.decided(g.Call)
	case g.Question != nil && f.answer != nil && f.answer.QuestionId == g.Question.QuestionId:
		return f.answeredBefore(g.Call)
	case f.finished != nil && byTool(f.finished.Outcome):
		return refusal.CallAnswered(g.Call, fmt.Sprintf("%s has had another result since %s.", g.Call, at(f.time)),
			map[string]string{"user": f.user, "time": at(f.time)})
	case f.finished != nil:
		return refusal.CallEnded(g.Call, "it ended as "+strings.TrimPrefix(f.finished.Outcome.String(), "TOOL_OUTCOME_"))
	case f.ended:
		return refusal.CallEnded(g.Call, "its turn ended")
	default:
		return refusal.Store(store.ErrCallNotWaiting, refusal.Subject{Session: g.Session, Call: g.Call})
	}
}

// decided says what was decided before.
func (f fate) decided(call string) error {
	r, decided := f.resolved, "refused"
	if r.Approved {
		decided = "allowed"
	}
	if r.UpdatedArgumentsJson != "" {
		decided += " with other arguments"
	}
	metadata := map[string]string{"approved": strconv.FormatBool(r.Approved), "user": f.user, "time": at(f.time)}
	if scope := approvalScope(r.Scope); scope != commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE {
		metadata["scope"], metadata["rule"] = strings.TrimPrefix(scope.String(), "APPROVAL_SCOPE_"), r.Rule
		decided += ", with all calls of the rule " + r.Rule + ","
	}
	return refusal.CallAnswered(call, fmt.Sprintf("%s was %s before, by %s at %s.", call, decided, f.user, at(f.time)), metadata)
}

// answeredBefore says what was answered before.
func (f fate) answeredBefore(call string) error {
	action := strings.TrimPrefix(f.answer.Action.String(), "QUESTION_ACTION_")
	did := map[string]string{"ACCEPT": "answered", "DECLINE": "declined", "CANCEL": "closed"}[action]
	return refusal.CallAnswered(call, fmt.Sprintf("%s asked a question that was %s before, by %s at %s.", call, did, f.user, at(f.time)),
		map[string]string{"action": action, "user": f.user, "time": at(f.time)})
}

// sameApproval reports whether a request says what was decided. A different comment makes
// it another answer, because the model was not told of it; so do other arguments and
// another scope.
func sameApproval(was *sessionv1.ApprovalResolved, r *sessionv1.ResolveApprovalRequest) bool {
	return was.Approved == r.Approved && (r.Comment == "" || r.Comment == was.Comment) && was.UpdatedArgumentsJson == r.UpdatedArgumentsJson &&
		approvalScope(was.Scope) == approvalScope(r.Scope) && (r.Rule == "" || r.Rule == was.Rule)
}

func approvalScope(s commonv1.ApprovalScope) commonv1.ApprovalScope {
	return max(s, commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE)
}

// same reports whether the call has this answer.
func (f fate) same(g Given) bool {
	if g.Approval != nil {
		return f.resolved != nil && !f.resolved.Expired && f.digest == g.Approval.Digest && sameApproval(f.resolved, g.Approval)
	}
	if g.Question != nil {
		a := f.answer
		return a != nil && !a.Expired && a.QuestionId == g.Question.QuestionId && a.Action == g.Question.Action &&
			a.ContentJson == g.Question.ContentJson
	}
	if f.finished == nil || len(f.finished.Content) != len(g.Result.Content) || f.finished.Outcome != outcome(g.Result.IsError) {
		return false
	}
	for i, c := range f.finished.Content {
		if !proto.Equal(c, g.Result.Content[i]) {
			return false
		}
	}
	return true
}

func outcome(isError bool) sessionv1.ToolOutcome {
	if isError {
		return sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
	}
	return sessionv1.ToolOutcome_TOOL_OUTCOME_OK
}

// byTool reports whether a call ended by a result of its tool.
func byTool(o sessionv1.ToolOutcome) bool { return o == outcome(true) || o == outcome(false) }

func at(t *timestamppb.Timestamp) string { return t.AsTime().Format(time.RFC3339) }

// fateOfCommand reads the answer that is in the inbox and not in the log yet.
func fateOfCommand(c store.Command) (fate, error) {
	f := fate{known: true, user: c.User, time: timestamppb.New(c.Time)}
	var err error
	switch c.Kind {
	case store.CommandApproval:
		r := &sessionv1.ResolveApprovalRequest{}
		err = proto.Unmarshal(c.Body, r)
		f.digest, f.resolved = r.Digest, &sessionv1.ApprovalResolved{
			Approved: r.Approved, Comment: r.Comment, Scope: r.Scope, Rule: r.Rule, UpdatedArgumentsJson: r.UpdatedArgumentsJson,
		}
	case store.CommandAnswer:
		r := &sessionv1.AnswerQuestionRequest{}
		err = proto.Unmarshal(c.Body, r)
		f.answer = &sessionv1.QuestionResolved{QuestionId: r.QuestionId, Action: r.Action, ContentJson: r.ContentJson}
	case store.CommandToolResult:
		r := &sessionv1.SubmitToolResultRequest{}
		err = proto.Unmarshal(c.Body, r)
		f.finished = &sessionv1.ToolCallFinished{Outcome: outcome(r.IsError), Content: r.Content}
	default:
		f.resolved = &sessionv1.ApprovalResolved{Expired: true}
	}
	if err != nil {
		return f, fmt.Errorf("read the answer to call %s: %w", c.CallID, err)
	}
	return f, nil
}

// callPageBytes is about how much of a log is read at a time.
const callPageBytes = 1 << 20

// fateOf reads the state of a call from the log. The call's id begins with its turn's.
func (s *Checker) fateOf(ctx context.Context, k store.Key, call string) (fate, error) {
	var f fate
	if _, err := s.Store.GetSession(ctx, k); err != nil {
		return f, err
	}
	id, _, _ := strings.Cut(call, ".")
	turn, err := s.Store.GetTurn(ctx, k, id)
	if errors.Is(err, store.ErrNotFound) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	for after := turn.AfterSeq; ; {
		events, err := s.Store.ListEvents(ctx, k, after, 0, callPageBytes)
		if err != nil || len(events) == 0 {
			return f, err
		}
		for _, e := range events {
			if e.Turn == turn.Name && e.GetTurnFinished() != nil {
				f.ended = true
				return f, nil
			}
			f.see(e, call)
		}
		after = events[len(events)-1].Seq
	}
}

// see updates the state from an event.
func (f *fate) see(e *sessionv1.Event, call string) {
	switch b := e.Body.(type) {
	case *sessionv1.Event_ToolCallStarted:
		f.known = f.known || b.ToolCallStarted.CallId == call
	case *sessionv1.Event_ApprovalRequested:
		if r := b.ApprovalRequested; r.CallId == call {
			f.known, f.digest, f.resolved = true, r.Digest, nil
		}
	case *sessionv1.Event_ApprovalResolved:
		if r := b.ApprovalResolved; r.CallId == call {
			f.resolved, f.user, f.time = r, r.User, e.Time
		}
	case *sessionv1.Event_QuestionRequested:
		f.known = f.known || b.QuestionRequested.CallId == call
	case *sessionv1.Event_QuestionResolved:
		if r := b.QuestionResolved; r.CallId == call {
			f.answer, f.user, f.time = r, r.User, e.Time
		}
	case *sessionv1.Event_ToolCallFinished:
		if r := b.ToolCallFinished; r.CallId == call {
			f.finished = r
			if f.resolved == nil && f.answer == nil {
				f.time = e.Time
			}
		}
	}
}
