package inbox

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// TakeAnswer takes a person's answer to a question of a call. An answer to another question is
// dropped.
func TakeAnswer(sc state.Scope, c store.Command) error {
	r := &sessionv1.AnswerQuestionRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	t, write := sc.Active, answering(c)
	if t == nil || !t.AsksQuestion(c.CallID) || t.Run.Asked[c.CallID].Digest != r.QuestionId {
		return sc.Append(write)
	}
	a := &commonv1.QuestionAnswer{Id: r.QuestionId, Action: r.Action, ContentJson: r.ContentJson, User: c.User}
	if err := t.SetAnswer(c.CallID, a); err != nil {
		return err
	}
	write.Events = append(write.Events, questionResolved(sc, c.CallID, a, false))
	return resume(sc, write)
}

// expireQuestion ends the wait for an answer. The server of a tool gets the answer CANCEL and ends
// its call itself; the agent's own question has nothing to end.
func expireQuestion(sc state.Scope, write store.Write, call, tool, why string) error {
	t := sc.Active
	a := &commonv1.QuestionAnswer{Id: t.Run.Asked[call].Digest, Action: commonv1.QuestionAction_QUESTION_ACTION_CANCEL}
	if err := t.SetAnswer(call, a); err != nil {
		return err
	}
	write.Events = append(write.Events, questionResolved(sc, call, a, true))
	if tool != state.QuestionTool {
		return resume(sc, write)
	}
	return expire(sc, write, call, tool, "The user was asked. "+why+" Go on without an answer.")
}

func questionResolved(sc state.Scope, call string, a *commonv1.QuestionAnswer, expired bool) *sessionv1.Event {
	return sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_QuestionResolved{QuestionResolved: &sessionv1.QuestionResolved{
		CallId: call, QuestionId: a.Id, Action: a.Action, ContentJson: a.ContentJson, User: a.User, Expired: expired,
	}}})
}
