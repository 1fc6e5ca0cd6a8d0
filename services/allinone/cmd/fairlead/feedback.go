package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// feedbackCommand keeps and lists what people think of answers.
type feedbackCommand struct {
	Create createFeedbackCommand `cmd:"" help:"Judge a turn, or the message of one of its steps."`
	List   listFeedbackCommand   `cmd:"" help:"List a session's judgements, the last one first."`
}

// createFeedbackCommand judges an answer.
type createFeedbackCommand struct {
	Turn    string `arg:"" help:"The turn, as SESSION/turns/TURN; 'fairlead sessions show SESSION' lists the turns."`
	Value   string `arg:"" enum:"positive,negative" help:"The judgement: positive or negative."`
	Comment string `arg:"" optional:"" help:"A comment."`
	Step    int32  `placeholder:"N" help:"The step that is judged, from 1; without it the turn as a whole."`
	JSON    bool   `name:"json" help:"Print the judgement as JSON."`
	target
}

// Run judges an answer.
func (c createFeedbackCommand) Run(ctx context.Context, s stdio) error {
	turn := sessionName(c.Turn)
	session, _, _ := strings.Cut(turn, "/turns/")
	r := &sessionv1.CreateFeedbackRequest{Parent: session, RequestId: id.New(), Feedback: &sessionv1.Feedback{
		Turn: turn, Step: c.Step, Comment: c.Comment,
		Value: sessionv1.FeedbackValue(sessionv1.FeedbackValue_value["FEEDBACK_VALUE_"+strings.ToUpper(c.Value)]),
	}}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.CreateFeedbackResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.feedback.CreateFeedback(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, resp.GetFeedback())
		}
		_, err = fmt.Fprintln(s.out, bare(resp.GetFeedback().GetName()))
		return err
	})
}

// listFeedbackCommand lists judgements.
type listFeedbackCommand struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print one JSON judgement per line."`
	target
}

// Run lists judgements.
func (c listFeedbackCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Feedback
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.feedback.ListFeedback(ctx, &sessionv1.ListFeedbackRequest{Parent: sessionName(c.Session), PageSize: size, PageToken: token})
			all = append(all, resp.GetFeedback()...)
			return len(resp.GetFeedback()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"FEEDBACK", "GIVEN", "BY", "TURN", "STEP", "VALUE", "COMMENT"}}
		for _, f := range all {
			step := ""
			if f.GetStep() > 0 {
				step = strconv.Itoa(int(f.GetStep()))
			}
			value := strings.ToLower(strings.TrimPrefix(f.GetValue().String(), "FEEDBACK_VALUE_"))
			rows = append(rows, []string{bare(f.GetName()), stamp(f.GetCreateTime()), bare(f.GetUser()), bare(f.GetTurn()), step, value, f.GetComment()})
		}
		return columns(s.out, rows)
	})
}
