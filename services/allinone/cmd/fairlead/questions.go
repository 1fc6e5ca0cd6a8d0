package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

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

// answerCommand answers a question.
type answerCommand struct {
	Call    string   `arg:"" help:"The call that asks, as fairlead approvals lists it."`
	Answers []string `arg:"" optional:"" help:"The answer to each question, in their order: the number of an option, its label, or other text; several options separated by commas."`
	Content string   `placeholder:"JSON" help:"The answer as a JSON object, for a form."`
	Decline bool     `help:"Refuse to answer. The agent goes on without one."`
	target
}

// Run answers the question.
func (c answerCommand) Run(ctx context.Context, s stdio) error {
	if c.Decline && (c.Content != "" || len(c.Answers) > 0) || c.Content != "" && len(c.Answers) > 0 {
		return usage("give answers, --content or --decline, but only one of them")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		p, err := b.waiting(ctx, c.Call)
		if err != nil {
			return terminal.Explained(err)
		}
		if p.GetQuestion() == nil {
			return fmt.Errorf("the call %s waits for an approval: use `fairlead approve` or `fairlead deny`", terminal.Line(c.Call, 100))
		}
		r := &sessionv1.AnswerQuestionRequest{
			Parent: p.GetSession(), CallId: p.GetCallId(), QuestionId: p.GetQuestion().GetId(), Action: declined,
		}
		if !c.Decline {
			r.Action = accepted
			if r.ContentJson, err = c.content(p.GetQuestion()); err != nil {
				return err
			}
		}
		_, err = b.repeat(ctx, r)
		return terminal.Explained(err)
	})
}

// content returns the content of the answer.
func (c answerCommand) content(q *commonv1.Question) (string, error) {
	items := q.GetItems()
	if c.Content != "" || len(items) == 0 && len(c.Answers) == 0 {
		return c.Content, nil
	}
	if len(c.Answers) != len(items) {
		return "", usage("questions: %d, answers: %d; give one answer for each question, in their order", len(items), len(c.Answers))
	}
	answers := map[string]any{}
	for i, item := range items {
		answers[item.GetQuestion()] = choice(item, c.Answers[i])
	}
	return contentOf(answers), nil
}
