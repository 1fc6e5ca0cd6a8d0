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
	Answers map[string]*elicited `json:"answers"`
	Open    string               `json:"open"`  // the key of the question that waits
	Count   int                  `json:"count"` // of questions so far
}

// elicited is a person's answer. The SDK's type leaves out a content without fields, and servers fail then.
type elicited struct {
	*mcp.ElicitResult
	Content json.RawMessage `json:"content,omitempty"`
}

// responses returns the answers for the server.
func (d *dialog) responses() mcp.InputResponseMap {
	if len(d.Answers) == 0 {
		return nil
	}
	all := mcp.InputResponseMap{}
	for key, a := range d.Answers {
		all[key] = a
	}
	return all
}

// answered adds a person's answer.
func (d *dialog) answered(a *tool.Answer) error {
	if err := json.Unmarshal(a.State, d); err != nil {
		return fmt.Errorf("decode the state of a question: %w", err)
	}
	asked, _ := d.Asked[d.Open].(*mcp.ElicitParams)
	result, err := resultOf(asked, a.QuestionAnswer)
	if err != nil {
		return err
	}
	if d.Answers == nil {
		d.Answers = map[string]*elicited{}
	}
	d.Answers[d.Open] = result
	return nil
}

// resultOf returns a person's answer in the form for servers. An accepted form has a content, which may be empty; a page
// that was visited has none.
func resultOf(asked *mcp.ElicitParams, a *commonv1.QuestionAnswer) (*elicited, error) {
	switch a.GetAction() {
	case commonv1.QuestionAction_QUESTION_ACTION_ACCEPT:
		r := &elicited{ElicitResult: &mcp.ElicitResult{Action: "accept"}}
		if asked == nil || visits(asked) {
			return r, nil
		}
		var err error
		r.Content, err = complete(asked.RequestedSchema, a.GetContentJson())
		return r, err
	case commonv1.QuestionAction_QUESTION_ACTION_DECLINE:
		return &elicited{ElicitResult: &mcp.ElicitResult{Action: "decline"}}, nil
	default:
		return cancelled(), nil
	}
}

// cancelled is the answer to a question that was not answered.
func cancelled() *elicited { return &elicited{ElicitResult: &mcp.ElicitResult{Action: "cancel"}} }

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
	if visits(p) {
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
	if err := e.Encode(plainForm(p.RequestedSchema)); err != nil || form.Len() > maxForm {
		return nil, errors.New("the form of its question cannot be read")
	}
	if q.SchemaJson = strings.TrimSpace(form.String()); q.GetSchemaJson() == "null" {
		q.SchemaJson = ""
	}
	return q, nil
}

// visits reports whether a question asks to visit a page.
func visits(p *mcp.ElicitParams) bool { return p.Mode == "url" || p.URL != "" }

// elicits answers questions in place of the SDK, which refuses forms that servers write, and drops an empty content.
func (l *link) elicits(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, q mcp.Request) (mcp.Result, error) {
		if asked, ok := q.(*mcp.ElicitRequest); ok && asked.Params != nil {
			return l.elicit(ctx, asked)
		}
		return next(ctx, method, q)
	}
}

// elicit answers a server that asks within a call.
func (l *link) elicit(_ context.Context, q *mcp.ElicitRequest) (*elicited, error) {
	c := l.calls.only()
	if c == nil {
		// The server does not say for which call it asks.
		return cancelled(), nil
	}
	question, err := questionOf(l.server.GetName(), int(c.asked.Add(1)), q.Params)
	if err != nil {
		return cancelled(), nil // the server goes on without an answer
	}
	c.pause()
	defer c.goOn()
	ctx, cancel := context.WithTimeout(c.ctx, answerWait)
	defer cancel()
	answer, err := c.out.Ask(ctx, question) //nolint:contextcheck // the question belongs to the call, not to the connection
	if err != nil {
		return cancelled(), nil // as above
	}
	return resultOf(q.Params, answer)
}
