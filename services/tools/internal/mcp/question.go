package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// A server of the newest revision asks by its result: the call ends, the journal keeps
// what was asked, and the call is made again with the answers. An older server asks
// within a call, and has its connection wait for the answer.

const (
	// answerWait bounds how long a connection waits for an answer.
	answerWait = 10 * time.Minute
	// maxQuestion bounds the message of a question, and maxForm its schema.
	maxQuestion = 16 << 10
	maxForm     = 64 << 10
	// maxKey bounds a server's name of a question.
	maxKey = 200
	// maxAnswers bounds the answers of one round.
	maxAnswers = 20
)

// dialog is what a call needs to go on with an answer.
type dialog struct {
	State   string               `json:"state"` // the server's, unread
	Asked   mcp.InputRequestMap  `json:"asked"`
	Answers mcp.InputResponseMap `json:"answers"`
	Open    string               `json:"open"`  // the key of the question that waits
	Count   int                  `json:"count"` // of questions so far
}

// answered adds a person's answer.
func (d *dialog) answered(a *tool.Answer) error {
	if err := json.Unmarshal(a.State, d); err != nil {
		return fmt.Errorf("decode the state of a question: %w", err)
	}
	result, err := resultOf(a.QuestionAnswer)
	if err != nil {
		return err
	}
	if d.Answers == nil {
		d.Answers = mcp.InputResponseMap{}
	}
	d.Answers[d.Open] = result
	return nil
}

// resultOf returns a person's answer in the form for servers.
func resultOf(a *commonv1.QuestionAnswer) (*mcp.ElicitResult, error) {
	switch a.GetAction() {
	case commonv1.QuestionAction_QUESTION_ACTION_ACCEPT:
		r := &mcp.ElicitResult{Action: "accept"}
		if a.GetContentJson() == "" {
			return r, nil
		}
		d := json.NewDecoder(strings.NewReader(a.GetContentJson()))
		d.UseNumber()
		if err := d.Decode(&r.Content); err != nil {
			return nil, fmt.Errorf("decode an answer that was checked: %w", err)
		}
		for name, v := range r.Content { // the SDK's check takes a json.Number for a text
			if n, ok := v.(json.Number); ok {
				r.Content[name] = number(n)
			}
		}
		return r, nil
	case commonv1.QuestionAction_QUESTION_ACTION_DECLINE:
		return &mcp.ElicitResult{Action: "decline"}, nil
	default:
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
}

// number returns an integer as it is, as far as int64 goes.
func number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64() // beyond float64, the form's own bounds refuse it
	return f
}

// next returns the question that is to be asked next, or nil when all have answers.
func (d *dialog) next(server string) (*tool.AskingError, error) {
	if len(d.Asked) > maxAnswers {
		return nil, fmt.Errorf("it asks %d questions at once; the most is %d", len(d.Asked), maxAnswers)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Asked)) {
		if d.Answers[key] != nil {
			continue
		}
		q, ok := d.Asked[key].(*mcp.ElicitParams)
		if !ok {
			return nil, errors.New("it asks for what this client does not offer: only questions to a person are answered")
		}
		d.Open = key
		d.Count++
		question, err := questionOf(server, d.Count, q)
		if err != nil {
			return nil, err
		}
		question.Key = cut(strings.ToValidUTF8(key, "\uFFFD"), maxKey)
		state, err := json.Marshal(d)
		return &tool.AskingError{Question: question, State: state}, err
	}
	return nil, nil //nolint:nilnil // there is none
}

// questionOf converts a server's question.
func questionOf(server string, n int, p *mcp.ElicitParams) (*commonv1.Question, error) {
	q := &commonv1.Question{Id: fmt.Sprintf("q%d", n), Server: server, Message: cut(strings.ToValidUTF8(p.Message, "\uFFFD"), maxQuestion)}
	if p.Mode == "url" || p.URL != "" {
		u, err := url.Parse(p.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(p.URL) > 4096 {
			return nil, errors.New("it asks to visit a page whose address is not one")
		}
		q.Url = p.URL
		return q, nil
	}
	var form bytes.Buffer
	e := json.NewEncoder(&form)
	e.SetEscapeHTML(false)
	if err := e.Encode(titled(p.RequestedSchema)); err != nil || form.Len() > maxForm {
		return nil, errors.New("the form of its question cannot be read")
	}
	if q.SchemaJson = strings.TrimSpace(form.String()); q.GetSchemaJson() == "null" {
		q.SchemaJson = ""
	}
	return q, nil
}

// titled returns a form whose choices among titled values have no type beside the values, as the protocol writes them:
// the SDK refuses others, before a person is asked and after.
func titled(form any) any {
	root, _ := form.(map[string]any)
	fields, _ := root["properties"].(map[string]any)
	for _, f := range fields {
		field, _ := f.(map[string]any)
		if items, ok := field["items"].(map[string]any); ok && items["anyOf"] != nil {
			delete(items, "type")
		}
	}
	return form
}

// titledForms makes the forms of questions within calls such that the SDK takes them.
func titledForms(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, q mcp.Request) (mcp.Result, error) {
		if asked, ok := q.(*mcp.ElicitRequest); ok && asked.Params != nil {
			asked.Params.RequestedSchema = titled(asked.Params.RequestedSchema)
		}
		return next(ctx, method, q)
	}
}

// elicit answers a server that asks within a call.
func (l *link) elicit(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	cancelled := &mcp.ElicitResult{Action: "cancel"}
	c := l.calls.only()
	if c == nil {
		// The server does not say for which call it asks.
		return cancelled, nil
	}
	question, err := questionOf(l.server.GetName(), int(c.asked.Add(1)), q.Params)
	if err != nil {
		return cancelled, nil // the server goes on without an answer
	}
	c.pause()
	defer c.goOn()
	ctx, cancel := context.WithTimeout(c.ctx, answerWait)
	defer cancel()
	answer, err := c.out.Ask(ctx, question) //nolint:contextcheck // the question belongs to the call, not to the connection
	if err != nil {
		return cancelled, nil // as above
	}
	return resultOf(answer)
}
