package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// AskTool is the function as which a wire without questions shows them: its client runs the function, which asks a
// person, and the result is the answer.
const AskTool = "AskUserQuestion"

// ErrForm refuses a text as the answer to a form.
var ErrForm = errors.New(`is a text, which cannot answer a form: send a JSON object that fits its schema, or {"answers": {question: answer}} for several questions`)

// AskID returns the id of the call of AskTool that stands for a question.
func AskID(call, question string) string { return call + "/" + question }

// AskArguments returns the arguments of that call.
func AskArguments(q *commonv1.Question) json.RawMessage {
	type option struct {
		Label       string `json:"label"`
		Description string `json:"description,omitempty"`
	}
	type item struct {
		Question string   `json:"question"`
		Header   string   `json:"header,omitempty"`
		Options  []option `json:"options"`
		Multiple bool     `json:"multiple"`
	}
	in := struct {
		Message   string          `json:"message,omitempty"`
		Questions []item          `json:"questions,omitempty"`
		Schema    json.RawMessage `json:"schema,omitempty"`
		URL       string          `json:"url,omitempty"`
		Server    string          `json:"server,omitempty"`
	}{Message: q.GetMessage(), URL: q.GetUrl(), Server: q.GetServer()}
	if text := q.GetSchemaJson(); json.Valid([]byte(text)) {
		in.Schema = json.RawMessage(text)
	}
	for _, i := range q.GetItems() {
		one := item{Question: i.GetQuestion(), Header: i.GetHeader(), Options: []option{}, Multiple: i.GetMultiple()}
		for _, o := range i.GetOptions() {
			one.Options = append(one.Options, option{o.GetLabel(), o.GetDescription()})
		}
		in.Questions = append(in.Questions, one)
	}
	text, _ := json.Marshal(in) //nolint:errchkjson // texts, and JSON that is valid
	return text
}

// AskAnswer returns the request that answers a question with the result of AskTool: a failure declines, a JSON object is
// the answer's content, and a text answers a single question. It returns nil if the call asked no such question.
func (s *Server) AskAnswer(ctx context.Context, session, id string, content []*commonv1.Content, failed bool) (*sessionv1.AnswerQuestionRequest, error) {
	call, question, ok := strings.Cut(id, "/")
	if !ok {
		return nil, nil //nolint:nilnil // the id is another call's
	}
	var q *commonv1.Question
	turn, _, _ := strings.Cut(call, ".")
	err := s.asked(ctx, session, turn, func(ev *sessionv1.Event) bool {
		if r := ev.GetQuestionRequested(); r.GetCallId() == call && r.GetQuestion().GetId() == question {
			q = r.GetQuestion()
		}
		return q != nil
	})
	if err != nil || q == nil {
		return nil, err
	}
	req := &sessionv1.AnswerQuestionRequest{Parent: session, CallId: call, QuestionId: question, Action: commonv1.QuestionAction_QUESTION_ACTION_ACCEPT}
	var said []string
	for _, c := range content {
		said = append(said, c.GetText().GetText())
	}
	text := strings.TrimSpace(strings.Join(said, "\n"))
	switch {
	case failed:
		req.Action = commonv1.QuestionAction_QUESTION_ACTION_DECLINE
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		req.ContentJson = text
	case len(q.GetItems()) == 1:
		answers, err := json.Marshal(map[string]any{"answers": map[string]any{q.GetItems()[0].GetQuestion(): text}})
		if err != nil {
			return nil, err
		}
		req.ContentJson = string(answers)
	case q.GetUrl() == "": // of a page, the text says that the person has been there
		return nil, ErrForm
	}
	return req, nil
}
