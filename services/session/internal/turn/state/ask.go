package state

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxShown bounds the arguments that a list of what waits shows, in bytes.
const maxShown = 256 << 10

// Ask adds the question whether a call may run, or the turn go on, to a write. An answer to an
// earlier question about the same call does not count any more.
func (s *Session) Ask(write *store.Write, a *sessionv1.ApprovalRequested) {
	a.ExpireTime = s.answerDeadline()
	s.Active.Run.Asked[a.CallId] = Question{Digest: a.Digest, Rule: a.Rule, Suggested: a.SuggestedRules}
	delete(s.Active.Run.Approvals, a.CallId)
	write.Events = append(write.Events, s.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: a}}))
	s.AwaitAnswer(write, store.PendingCall{CallID: a.CallId, Answer: store.CommandApproval, Digest: a.Digest, Shown: shownApproval(a)})
}

// AskQuestion adds a question of a call to a write. The answer to an earlier question of the call
// has reached the call.
func (s *Session) AskQuestion(write *store.Write, u *sessionv1.ToolUse, q *commonv1.Question) {
	end := s.answerDeadline()
	s.Active.Run.Asked[u.CallId] = Question{Digest: q.Id, Asks: true}
	delete(s.Active.Run.Answers, u.CallId)
	write.Events = append(write.Events, s.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{
		CallId: u.CallId, Tool: u.Tool, Question: q, ExpireTime: end,
	}}}))
	s.AwaitAnswer(write, store.PendingCall{
		CallID: u.CallId, Answer: store.CommandAnswer, Digest: q.Id,
		Shown: &sessionv1.PendingApproval{Tool: u.Tool, Message: q.Message, Question: q, ExpireTime: end},
	})
}

// shownApproval returns what the list of what waits shows of a question.
func shownApproval(a *sessionv1.ApprovalRequested) *sessionv1.PendingApproval {
	p := &sessionv1.PendingApproval{
		Kind: a.Kind, Tool: a.Tool, ArgumentsJson: a.ArgumentsJson, Rule: a.Rule, SuggestedRules: a.SuggestedRules,
		Message: a.Message, ExpireTime: a.ExpireTime,
	}
	if len(p.ArgumentsJson) > maxShown {
		p.ArgumentsJson, p.Shortened = "", true
	}
	return p
}

// answerDeadline returns when the time for an answer to a question of now runs out; nil: never.
func (s *Session) answerDeadline() *timestamppb.Timestamp {
	if s.AnswerTTL <= 0 {
		return nil
	}
	return timestamppb.New(time.Now().Add(s.AnswerTTL))
}
