package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	client "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/fold"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// question asks a person about an approval, and says which answers there are.
func question(a *sessionv1.ApprovalRequested) string {
	if a.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
		return "Carry the plan out? [y/n] (e: yes, and do not ask about changes of files; n and what to change) "
	}
	text := "May it go on? [y/n] "
	if tool := terminal.Line(a.GetTool(), 40); tool != "" {
		text = "May " + tool + " run? [y/n] "
	}
	if rules := a.GetSuggestedRules(); len(rules) > 0 {
		text += fmt.Sprintf("(s: yes, and all of %s in this session; a: in every session; n and a reason) ", terminal.Line(rules[0], 80))
	}
	return text
}

// approvalOf reads a person's line; nil: it is no answer.
func approvalOf(line string) *sessionv1.ResolveApprovalRequest {
	word, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word = strings.ToLower(word); {
	case word == "n" || word == "no":
		return &sessionv1.ResolveApprovalRequest{Comment: strings.TrimSpace(reason)}
	case reason != "":
		return nil
	case word == "y" || word == "yes":
		return &sessionv1.ResolveApprovalRequest{Approved: true}
	case word == "e":
		return &sessionv1.ResolveApprovalRequest{Approved: true, Mode: commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS}
	case word == "s":
		return &sessionv1.ResolveApprovalRequest{Approved: true, Scope: commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION}
	case word == "a":
		return &sessionv1.ResolveApprovalRequest{Approved: true, Scope: commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS}
	}
	return nil
}

// ask is what waits for a person's answer.
type ask struct {
	*fold.Ask
	answers map[string]any // to the question's items so far
}

// what says what the turn waits for.
func (a *ask) what() string {
	if a.Approval == nil {
		return "The turn waits for an answer"
	}
	return "The turn waits for an approval"
}

// prompt returns the text that asks for the next line.
func (a *ask) prompt() string {
	if a.Approval != nil {
		return question(a.Approval)
	}
	return itemPrompt(a.Question.GetQuestion(), len(a.answers))
}

// wait adds an ask, and asks at once if no other is before it.
func (c *conversation) wait(ctx context.Context, a *ask) error {
	if c.pending = append(c.pending, a); len(c.pending) > 1 {
		return nil
	}
	return c.ask(ctx)
}

// ask asks the oldest question, or says how to answer it. If no person can answer, it stops the turn,
// which would wait for ever.
func (c *conversation) ask(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	a := c.pending[0]
	call := terminal.Line(a.Call, 0)
	switch {
	case c.answers == nil && c.alone:
		c.notice("%s, and there is no terminal to ask in: run this in a terminal, or use --server with a server that others can reach.", a.what())
		return c.interrupt(ctx)
	case c.answers == nil && a.Approval == nil:
		c.notice("%s. Answer it with one of these, with the same --server:\n  fairlead answer %[2]s 'the answer'\n  fairlead answer %[2]s --decline", a.what(), call)
		return nil
	case c.answers == nil:
		c.notice("%s. Answer it with one of these, with the same --server:\n  fairlead approve %[2]s\n  fairlead deny %[2]s --comment 'what to do instead'", a.what(), call)
		return nil
	}
	c.dropTyped() // it is no answer to this question
	c.nextLine(a.prompt())
	return nil
}

// resolved takes an ask off the list, and asks the next.
func (c *conversation) resolved(ctx context.Context, ended *fold.Ask) error {
	for i, a := range c.pending {
		if a.Ask == ended {
			c.pending = append(c.pending[:i:i], c.pending[i+1:]...)
			if i == 0 {
				return c.ask(ctx)
			}
			return nil
		}
	}
	return nil
}

// answer takes a person's line as the answer to the oldest ask.
func (c *conversation) answer(ctx context.Context, line string, more bool) error {
	if !more { // the input has ended
		c.answers = nil
		return c.ask(ctx)
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	a := c.pending[0]
	read := a.answerQuestion
	if a.Approval != nil {
		read = a.answerApproval
	}
	send := read(line)
	if send == nil {
		c.nextLine(a.prompt())
		return nil
	}
	err := client.Retry(ctx, c.backoff, func() error { return send(ctx, c) })
	if err != nil && ctx.Err() == nil { // another client may have answered: the events say so
		c.notice("the answer was not accepted: %s", terminal.Explain(err))
		if a.Approval == nil && apierr.Code(err) == codes.InvalidArgument { // the person can correct it
			a.answers = nil
			c.nextLine(a.prompt())
			return nil
		}
		err = nil
	}
	return errors.Join(err, c.resolved(ctx, a.Ask))
}

// answerApproval returns the RPC for a person's line; nil: the line is no answer.
func (a *ask) answerApproval(line string) func(context.Context, *conversation) error {
	req := approvalOf(line)
	plan := a.Approval.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN
	if req == nil || req.Scope != 0 && len(a.Approval.GetSuggestedRules()) == 0 || req.Mode != 0 && !plan {
		return nil
	}
	req.CallId, req.Digest, req.RequestId = a.Call, a.Approval.GetDigest(), id.New()
	return func(ctx context.Context, c *conversation) error {
		req.Parent = cmp.Or(a.Session, c.session)
		_, err := c.sessions.ResolveApproval(ctx, req)
		return err
	}
}

// answerQuestion returns the RPC once a person's lines answer all of the question; nil: more are needed.
func (a *ask) answerQuestion(line string) func(context.Context, *conversation) error {
	q := a.Question.GetQuestion()
	req := &sessionv1.AnswerQuestionRequest{CallId: a.Call, QuestionId: q.GetId(), Action: declined, RequestId: id.New()}
	if strings.TrimSpace(line) != "/decline" {
		content, complete := a.take(line)
		if !complete {
			return nil
		}
		req.Action, req.ContentJson = accepted, content
	}
	return func(ctx context.Context, c *conversation) error {
		req.Parent = cmp.Or(a.Session, c.session)
		_, err := c.sessions.AnswerQuestion(ctx, req)
		return err
	}
}

// take adds a line to the answers, and returns the content once it is complete.
func (a *ask) take(line string) (content string, complete bool) {
	items := a.Question.GetQuestion().GetItems()
	if len(items) == 0 {
		return strings.TrimSpace(line), true
	}
	if strings.TrimSpace(line) == "" {
		return "", false
	}
	if a.answers == nil {
		a.answers = map[string]any{}
	}
	item := items[len(a.answers)]
	a.answers[item.GetQuestion()] = choice(item, line)
	if len(a.answers) < len(items) {
		return "", false
	}
	return contentOf(a.answers), true
}

const (
	accepted = commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
	declined = commonv1.QuestionAction_QUESTION_ACTION_DECLINE
)

// itemPrompt asks a person for the answer to the item n of a question.
func itemPrompt(q *commonv1.Question, n int) string {
	items := q.GetItems()
	if len(items) == 0 {
		return "Your answer, or /decline: "
	}
	item := items[min(n, len(items)-1)]
	how := "a number"
	if item.GetMultiple() {
		how = "numbers, separated by commas"
	}
	return fmt.Sprintf("%s (%s, other text, or /decline) ", terminal.Line(item.GetQuestion(), 200), how)
}

// choice reads a person's answer to an item: the numbers of options, their labels, or other text.
func choice(item *commonv1.QuestionItem, line string) any {
	line = strings.TrimSpace(line)
	if !item.GetMultiple() {
		if label := numbered(item, line); label != "" {
			return label
		}
		return line
	}
	var labels []string
	for part := range strings.SplitSeq(line, ",") {
		label := numbered(item, strings.TrimSpace(part))
		if label == "" {
			return []string{line}
		}
		labels = append(labels, label)
	}
	return labels
}

// numbered returns the label of an option that is given by number or label.
func numbered(item *commonv1.QuestionItem, text string) string {
	n, err := strconv.Atoi(text)
	for i, o := range item.GetOptions() {
		if err == nil && n == i+1 || strings.EqualFold(text, o.GetLabel()) {
			return o.GetLabel()
		}
	}
	return ""
}

// contentOf returns the content of an answer to a question with items.
func contentOf(answers map[string]any) string {
	content, err := json.Marshal(map[string]any{"answers": answers})
	if err != nil {
		panic(err) // it has only text
	}
	return string(content)
}
