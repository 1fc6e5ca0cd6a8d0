package openai

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// chat streams from one provider with the Chat Completions API. It is safe for
// concurrent use.
type chat struct {
	cfg  Config
	back atomic.Int32 // the level of reasoning that the server accepts, as far as known
}

func newChat(c Config) *chat {
	m := &chat{cfg: c}
	m.back.Store(int32(firstLevel(c.Reasoning)))
	return m
}

// Stream implements model.Model. It repeats a request in another form if the
// server refuses it because of its reasoning, or because reasoning is missing.
func (m *chat) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	begun := false
	counted := func(d model.Delta) error {
		begun = true
		return emit(d)
	}
	t := trial{level: level(m.back.Load())}
	for {
		body, err := m.body(r, t.level)
		if err != nil { // such as that of a tool whose schema is not JSON
			return nil, &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the request to the model provider %s could not be written: %v", m.cfg.Provider, err), Err: err}
		}
		var resp *model.Response
		if !bytes.Equal(t.sent, body) {
			resp, t.err = m.post(ctx, r, body, counted)
			t.sent = body
		}
		if t.err == nil {
			m.back.Store(int32(t.level))
			return resp, nil
		}
		if begun || m.cfg.Reasoning == Always || m.cfg.Reasoning == Never || !t.next() {
			return nil, prompt.Named(t.err, sent(m.conversation(r, t.level)))
		}
	}
}

// post makes one request.
func (m *chat) post(ctx context.Context, r model.Request, body []byte, emit func(model.Delta) error) (*model.Response, error) {
	watched, w := transport.Begin(ctx, m.cfg.Provider, m.cfg.Key, m.cfg.Idle)
	defer w.End()
	raw, err := client.Post(watched, w, m.cfg.BaseURL, m.cfg.Key, body, "chat", "completions")
	if err != nil {
		return nil, w.Fail(ctx, err)
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: w.Gather(emit), watch: w, sent: len(body)}
	a.limits = transport.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}
