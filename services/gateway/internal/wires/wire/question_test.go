package wire

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func (l *log) GetTurn(_ context.Context, r *sessionv1.GetTurnRequest) (*sessionv1.GetTurnResponse, error) {
	if r.GetName() != "sessions/s/turns/t" {
		return nil, status.Error(codes.NotFound, "there is no such turn")
	}
	return &sessionv1.GetTurnResponse{Turn: &sessionv1.Turn{Name: r.GetName()}}, nil
}

func (l *log) ListEvents(context.Context, *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	var all []*sessionv1.Event
	for id, q := range map[string]*commonv1.Question{
		"one":  {Items: []*commonv1.QuestionItem{{Question: "Which?"}}},
		"two":  {Items: []*commonv1.QuestionItem{{Question: "Which?"}, {Question: "Why?"}}},
		"form": {SchemaJson: `{"type":"object"}`},
		"page": {Url: "https://x.example"},
	} {
		q.Id = id
		all = append(all, &sessionv1.Event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{CallId: "t.1", Question: q}}})
	}
	return &sessionv1.ListEventsResponse{Events: all}, nil
}

func TestTheResultOfAskToolAnswersAQuestion(t *testing.T) {
	s := serve(t, &log{}, Config{})
	for _, c := range []struct {
		id, text, content string
		failed            bool
		err               error
		none              bool
	}{
		{id: "t.1/one", text: "B", content: `{"answers":{"Which?":"B"}}`},
		{id: "t.1/one", text: `{"answers":{"Which?":["A","B"]}}`, content: `{"answers":{"Which?":["A","B"]}}`},
		{id: "t.1/one", text: "no", failed: true},
		{id: "t.1/two", text: "B", err: ErrForm},
		{id: "t.1/form", text: "B", err: ErrForm},
		{id: "t.1/form", text: ` {"n":9007199254740993}`, content: `{"n":9007199254740993}`},
		{id: "t.1/page", text: "done"},
		{id: "t.1/other", text: "B", none: true},
		{id: "x.1/one", text: "B", none: true},
		{id: "t.1", text: "B", none: true},
	} {
		content := []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: c.text}}}}
		got, err := s.AskAnswer(t.Context(), "sessions/s", c.id, content, c.failed)
		if !errors.Is(err, c.err) || (got == nil) != (c.none || c.err != nil) {
			t.Errorf("%s %q: %v, %v", c.id, c.text, got, err)
			continue
		}
		if got == nil {
			continue
		}
		action := commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
		if c.failed {
			action = commonv1.QuestionAction_QUESTION_ACTION_DECLINE
		}
		if got.GetContentJson() != c.content || got.GetAction() != action || AskID(got.GetCallId(), got.GetQuestionId()) != c.id {
			t.Errorf("%s %q: %v", c.id, c.text, got)
		}
	}
}
