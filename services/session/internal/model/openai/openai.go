// Package openai streams from models with OpenAI's Chat Completions API: OpenAI's
// own and those of compatible servers. It accepts the variants of these servers,
// such as calls that come whole, without index, with repeated names or with empty
// ids, and returns reasoning to servers that require it.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config configures the access to a model.
type Config struct {
	// Provider is the configured name. Reasoning is stored and returned under it;
	// errors contain it, too.
	Provider string
	// BaseURL with its /v1; DefaultBaseURL when empty.
	BaseURL string
	// Key is sent as a bearer token; empty for servers that need none.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// LegacyMaxTokens sends max_tokens instead of max_completion_tokens.
	LegacyMaxTokens bool
	// ReasoningEffort is sent unchanged unless it is empty.
	ReasoningEffort string
	// Reasoning says when reasoning is returned to the server; Auto when empty.
	Reasoning string
	// MaxOutputTokens is the model's own limit, at least 1.
	MaxOutputTokens int64
	// ContextTokens is the model's context; 0 when not known.
	ContextTokens int64
}

// Model streams from one provider. It is safe for concurrent use.
type Model struct {
	cfg  Config
	back atomic.Int32 // the level of reasoning that the server accepts, as far as known
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It opens no connection yet.
func New(c Config) *Model {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	m := &Model{cfg: c}
	m.back.Store(int32(firstLevel(c.Reasoning)))
	return m
}

// Stream implements model.Model. It repeats a request in another form if the
// server refuses it because of its reasoning, or because reasoning is missing.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
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
			resp, t.err = m.ask(ctx, r, body, counted)
			t.sent = body
		}
		if t.err == nil {
			m.back.Store(int32(t.level))
			return resp, nil
		}
		if begun || m.cfg.Reasoning == Always || m.cfg.Reasoning == Never || !t.next() {
			return nil, wire.Named(t.err, sent(m.conversation(r, t.level)))
		}
	}
}

// ask makes one request.
func (m *Model) ask(ctx context.Context, r model.Request, body []byte, emit func(model.Delta) error) (*model.Response, error) {
	watched, w := wire.Begin(ctx, m.cfg.Provider, m.cfg.Key, m.cfg.Idle)
	defer w.End()
	req, err := http.NewRequestWithContext(watched, http.MethodPost, strings.TrimRight(m.cfg.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, w.Fail(ctx, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if m.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.Key)
	}
	resp, err := w.Do(req)
	if err != nil {
		return nil, w.Fail(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: emit, watch: w, sent: len(body)}
	a.limits = wire.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, resp.Body)
}

// body returns the whole request as JSON.
func (m *Model) body(r model.Request, l level) ([]byte, error) {
	return json.Marshal(m.request(r, l))
}
