package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// parked is a question in the journal.
type parked struct {
	Question []byte // a Question message
	State    []byte // the tool's
}

func encodeQuestion(q *tool.AskingError) ([]byte, error) {
	question, err := proto.Marshal(q.Question)
	if err != nil {
		return nil, fmt.Errorf("encode a question: %w", err)
	}
	return json.Marshal(parked{question, q.State})
}

func decodeQuestion(b []byte) (*tool.AskingError, error) {
	var p parked
	q := &commonv1.Question{}
	if err := errors.Join(json.Unmarshal(b, &p), proto.Unmarshal(p.Question, q)); err != nil {
		return nil, fmt.Errorf("decode a recorded question: %w", err)
	}
	return &tool.AskingError{Question: q, State: p.State}, nil
}

func questionPiece(q *commonv1.Question) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Question{Question: q}}
}

// fits checks that an answer is to a question, and keeps to its form.
func fits(q *commonv1.Question, a *commonv1.QuestionAnswer) error {
	accepted := a.GetAction() == commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
	switch {
	case q.GetId() != a.GetId():
		return ErrQuestionMismatch
	case a.GetAction() == commonv1.QuestionAction_QUESTION_ACTION_UNSPECIFIED:
		return fmt.Errorf("%w: its action is missing", ErrAnswer)
	case !accepted || q.GetSchemaJson() == "":
		return nil
	}
	form, err := schema.Compile(q.GetSchemaJson())
	if err != nil {
		return nil //nolint:nilerr // the tool checks the answer itself
	}
	content, err := schema.ParseArguments(a.GetContentJson())
	if err == nil {
		err = form.Check("content", content.Value)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// proceed goes on with a call that asked a person, once there is the answer.
func (a *attempt) proceed(ctx context.Context, decider *permission.Policy) error {
	q, err := decodeQuestion(a.rec.Question)
	if err != nil {
		return err
	}
	if a.Answer == nil {
		return a.send(questionPiece(q.Question))
	}
	if err := fits(q.Question, a.Answer); err != nil {
		return err
	}
	t, fault := a.lookup(ctx)
	if fault != "" {
		return a.endUnrun(ctx, nil, tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN,
			"The call asked a person and cannot go on with the answer. It may have taken effect: check before repeating it. "+fault))
	}
	args, err := schema.ParseArguments(a.arguments())
	if err != nil {
		return err
	}
	refused, err := a.decideAgain(ctx, decider, t, args)
	if err != nil {
		return err
	}
	if refused != nil {
		return a.endUnrun(ctx, nil, refused)
	}
	r, other, err := a.acquireRun(ctx, t, args)
	if err != nil || other != nil {
		return errors.Join(err, a.attach(ctx, other))
	}
	if err := a.journal(ctx, store.Started, nil); err != nil {
		a.abandon(r)
		return err
	}
	r.own(a.rec.Claim + 1)
	r.call.Answer, r.asks.taken = &tool.Answer{QuestionAnswer: a.Answer, State: q.State}, a.Answer.GetId()
	a.launch(ctx, r)
	return r.follow(ctx, a.send)
}

// answerAgain gives a resumed run the answer with which the call went on before its
// process ended.
func (a *attempt) answerAgain(r *run) error {
	if a.rec.Question == nil || a.Answer == nil {
		return nil
	}
	q, err := decodeQuestion(a.rec.Question)
	if err == nil {
		err = fits(q.Question, a.Answer)
	}
	if err == nil {
		r.call.Answer, r.asks.taken = &tool.Answer{QuestionAnswer: a.Answer, State: q.State}, a.Answer.GetId()
	}
	return err
}

// park journals the question with which a run has ended.
func (e *Engine) park(ctx context.Context, r *run, q *tool.AskingError) error {
	bytes, err := encodeQuestion(q)
	if err != nil {
		return err
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	err = e.Store.Move(writing, r.ref, store.Change{From: store.Started, To: store.Asked, Claim: r.claim.Load(), Question: bytes, At: e.Now()})
	if err == nil {
		r.mu.Lock()
		r.asks.question = q.Question
		r.mu.Unlock()
	}
	return err
}

// errSecondQuestion refuses a question while another one is open.
var errSecondQuestion = errors.New("the call waits for the answer to another question")

// Ask implements tool.Sink.
func (r *run) Ask(ctx context.Context, q *commonv1.Question) (*commonv1.QuestionAnswer, error) {
	r.mu.Lock()
	if r.asks.question != nil {
		r.mu.Unlock()
		return nil, errSecondQuestion
	}
	answer := make(chan *commonv1.QuestionAnswer, 1)
	r.asks.question, r.asks.answer = q, answer
	r.wake()
	r.mu.Unlock()
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.asks.answer == answer {
			r.asks.question, r.asks.answer = nil, nil
			r.wake()
		}
		return nil, context.Cause(ctx)
	}
}

// answer gives the run the answer to its question. The same answer may come again.
func (r *run) answer(a *commonv1.QuestionAnswer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		return store.ErrConflict // the journal has what follows
	case r.asks.question == nil && r.asks.taken == a.GetId():
		return nil
	case r.asks.question == nil || r.asks.answer == nil:
		return ErrQuestionMismatch
	}
	if err := fits(r.asks.question, a); err != nil {
		return err
	}
	r.asks.answer <- a
	r.asks.question, r.asks.answer, r.asks.taken = nil, nil, a.GetId()
	r.wake()
	return nil
}
