package main

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// feedbackCommand keeps and lists what people think of answers.
type feedbackCommand struct {
	Create shows[createFeedback, *sessionv1.Feedback] `cmd:"" help:"Judge a turn, or the message of one of its steps."`
	List   lists[listFeedback, *sessionv1.Feedback]   `cmd:"" help:"List a session's judgements, the last one first."`
}

type createFeedback struct {
	Turn    string `arg:"" help:"The turn, as SESSION/turns/TURN; 'fairlead sessions show SESSION' lists the turns."`
	Value   string `arg:"" enum:"positive,negative" help:"The judgement: positive or negative."`
	Comment string `arg:"" optional:"" help:"A comment."`
	Step    int32  `placeholder:"N" help:"The step that is judged, from 1; without it the turn as a whole."`
	jsonOne
}

func (f createFeedback) request() proto.Message {
	turn := sessionName(f.Turn)
	session, _, _ := strings.Cut(turn, "/turns/")
	return &sessionv1.CreateFeedbackRequest{Parent: session, Feedback: &sessionv1.Feedback{
		Turn: turn, Step: f.Step, Comment: f.Comment,
		Value: sessionv1.FeedbackValue(sessionv1.FeedbackValue_value["FEEDBACK_VALUE_"+strings.ToUpper(f.Value)]),
	}}
}

func (createFeedback) show(s stdio, made *sessionv1.Feedback) error {
	_, err := fmt.Fprintln(s.out, bare(made.GetName()))
	return err
}

type listFeedback struct {
	Session string `arg:"" help:"The session."`
	jsonList
}

func (f listFeedback) request() proto.Message {
	return &sessionv1.ListFeedbackRequest{Parent: sessionName(f.Session)}
}

func (listFeedback) row(x *sessionv1.Feedback) [][]string {
	step := ""
	if x.GetStep() > 0 {
		step = strconv.Itoa(int(x.GetStep()))
	}
	return [][]string{
		{"FEEDBACK", bare(x.GetName())}, {"GIVEN", stamp(x.GetCreateTime())}, {"BY", bare(x.GetUser())}, {"TURN", bare(x.GetTurn())}, {"STEP", step},
		{"VALUE", strings.ToLower(strings.TrimPrefix(x.GetValue().String(), "FEEDBACK_VALUE_"))}, {"COMMENT", x.GetComment()},
	}
}
