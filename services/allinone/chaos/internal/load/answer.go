package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// question is a call that a person is asked about, or that asks a person.
type question struct {
	session, call string
	digest        string // of an approval
	id            string // of a question
	arguments     string // of an approval
}

// verdict is a person's decision about a call.
type verdict struct {
	approved  bool
	arguments string // in place of the model's; empty: none
}

func (r replica) approve(ctx context.Context, session string, q question, v verdict, key string) error {
	_, err := r.client.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{
		Parent: session, CallId: q.call, Digest: q.digest, Approved: v.approved, UpdatedArgumentsJson: v.arguments, RequestId: key,
	})
	return judge("ResolveApproval", err)
}

func (r rest) approve(ctx context.Context, session string, q question, v verdict, key string) error {
	body := fmt.Sprintf(`{"call_id":%q,"digest":%q,"approved":%t,"updated_arguments_json":%q}`, q.call, q.digest, v.approved, v.arguments)
	return r.post(ctx, "/v1/"+session+"/approvals:resolve", body, key, func([]byte) error { return nil })
}

// action returns what a person does who gives this answer.
func action(content string) commonv1.QuestionAction {
	if content == "" {
		return commonv1.QuestionAction_QUESTION_ACTION_DECLINE
	}
	return commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
}

func (r replica) reply(ctx context.Context, session string, q question, content, key string) error {
	_, err := r.client.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{
		Parent: session, CallId: q.call, QuestionId: q.id, Action: action(content), ContentJson: content, RequestId: key,
	})
	return judge("AnswerQuestion", err)
}

func (r rest) reply(ctx context.Context, session string, q question, content, key string) error {
	body := fmt.Sprintf(`{"call_id":%q,"question_id":%q,"action":%q,"content_json":%q}`, q.call, q.id, action(content), content)
	return r.post(ctx, "/v1/"+session+"/questions:answer", body, key, func([]byte) error { return nil })
}

// asked lets people decide about a call, unless the clients have left. Now and then two say different things
// at about the same time: one of the two counts.
func (c *client) asked(ctx context.Context, session string, a *sessionv1.ApprovalRequested, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	q := question{session: session, call: a.GetCallId(), digest: a.GetDigest(), arguments: a.GetArgumentsJson()}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a schedule, not a secret
	think, verdicts := time.Duration(r.IntN(1500))*time.Millisecond, []verdict{{}, {approved: true}, {approved: true}, {true, script.Edit(q.arguments, "a")}}
	first := verdicts[r.IntN(len(verdicts))]
	if r.IntN(3) == 0 {
		second := verdict{true, script.Edit(q.arguments, "b")}
		if first.approved && r.IntN(2) == 0 {
			second = verdict{}
		}
		other := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule, not a secret
		c.people.Go(func() { c.decide(ctx, q, second, think, other) })
	}
	c.people.Go(func() { c.decide(ctx, q, first, think, r) }) // r is its own from here on
}

// inquired lets people answer a question, in the same way.
func (c *client) inquired(ctx context.Context, session string, a *sessionv1.QuestionRequested, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	q := question{session: session, call: a.GetCallId(), id: a.GetQuestion().GetId()}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a schedule, not a secret
	think, contents := time.Duration(r.IntN(1500))*time.Millisecond, []string{""}
	for _, l := range script.Labels {
		contents = append(contents, fmt.Sprintf(`{"answers":{%q:%q}}`, script.Question, l))
	}
	first := r.IntN(len(contents))
	if r.IntN(3) == 0 {
		other := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule, not a secret
		c.people.Go(func() { c.answer(ctx, q, contents[(first+1)%len(contents)], think, other) })
	}
	c.people.Go(func() { c.answer(ctx, q, contents[first], think, r) }) // r is its own from here on
}

// leave waits for the people who answer; no others will.
func (c *client) leave() {
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.people.Wait()
}

// decide sends a decision.
func (c *client) decide(ctx context.Context, q question, v verdict, think time.Duration, r *rand.Rand) {
	late, key, ok := c.say(ctx, think, r, func(ctx context.Context, e entry, key string) error { return e.approve(ctx, q.session, q, v, key) })
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Answers = append(c.record.Answers, record.Answer{
		RequestID: key, CallID: q.call, Approved: v.approved, Arguments: v.arguments, TooLate: late, Time: time.Now(),
	})
}

// answer sends an answer to a question.
func (c *client) answer(ctx context.Context, q question, content string, think time.Duration, r *rand.Rand) {
	late, key, ok := c.say(ctx, think, r, func(ctx context.Context, e entry, key string) error { return e.reply(ctx, q.session, q, content, key) })
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Replies = append(c.record.Replies, record.Reply{RequestID: key, CallID: q.call, Content: content, TooLate: late, Time: time.Now()})
}

// say says something until it is acknowledged or too late, and now and then once more; false when the run is over before.
func (c *client) say(ctx context.Context, think time.Duration, r *rand.Rand, do func(ctx context.Context, e entry, key string) error) (late, key string, ok bool) {
	wait(ctx, think)
	say := func(ctx context.Context, e entry, key string) (string, error) { return "", do(ctx, e, key) }
	late, key, ok = c.mutate(ctx, r, say)
	if !ok && late == "" {
		return "", "", false
	}
	if ok && r.IntN(4) == 0 {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		e := c.entry(r)
		if _, err := say(try, e, key); err != nil && !errors.Is(err, errAgain) {
			c.refused(e, fmt.Errorf("the repeated answer: %w", err))
		}
		cancel()
	}
	return late, key, true
}
