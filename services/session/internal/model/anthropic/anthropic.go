// Package anthropic streams from models with Anthropic's Messages API.
package anthropic

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Config configures the access to a model.
type Config struct {
	// Provider is the configured name. Thinking is stored and replayed under
	// it; errors contain it, too.
	Provider string
	// BaseURL without /v1; DefaultBaseURL when empty.
	BaseURL string
	// Key is sent as x-api-key.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// Adaptive models decide themselves how much they think; others get the
	// request's bound as a budget.
	Adaptive bool
	// MaxOutputTokens is the model's own limit, at least 1.
	MaxOutputTokens int64
	// ContextTokens is the model's context; 0 when not known.
	ContextTokens int64
}

// Model streams from one provider. It is safe for concurrent use.
type Model struct {
	cfg Config
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It opens no connection yet.
func New(c Config) *Model {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	return &Model{cfg: c}
}

// version is the version of the API.
const version = "2023-06-01"

// Stream implements model.Model.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	watched, w := wire.Begin(ctx, m.cfg.Provider, m.cfg.Key, m.cfg.Idle)
	defer w.End()
	c := wire.NewConversation(r, m.own(r.Model))
	body, err := m.body(r, c)
	if err != nil { // such as that of a tool whose schema is not JSON
		return nil, &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the request to the model provider %s could not be written: %v", m.cfg.Provider, err), Err: err}
	}
	raw, err := m.post(watched, w, body)
	if err != nil {
		return nil, wire.Named(w.Fail(ctx, err), sent(c))
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: emit, watch: w, sent: len(body)}
	a.limits = wire.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}

// post sends the request once: the turn loop retries, visibly.
func (m *Model) post(ctx context.Context, w *wire.Watch, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.cfg.BaseURL, "/")+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "fairlead")
	req.Header.Set("Anthropic-Version", version)
	if m.cfg.Key != "" {
		req.Header.Set("X-Api-Key", m.cfg.Key)
	}
	return w.Do(req)
}
