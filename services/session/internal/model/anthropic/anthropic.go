// Package anthropic streams from models that speak Anthropic's Messages API.
package anthropic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Config says how a model is reached.
type Config struct {
	// Provider is the configured name, under which thinking is kept and
	// replayed; it is in errors as well.
	Provider string
	// BaseURL without /v1; DefaultBaseURL when empty.
	BaseURL string
	// Key is sent as x-api-key.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// Adaptive models decide themselves how much they think; the others are
	// given the request's bound as a budget.
	Adaptive bool
	// MaxOutputTokens is the model's own limit, at least 1.
	MaxOutputTokens int64
	// ContextTokens is the model's context; 0 when not known.
	ContextTokens int64
}

// Model streams from one provider. It is safe for concurrent use.
type Model struct {
	cfg    Config
	client sdk.Client
}

var _ model.Model = (*Model)(nil)

// New makes a Model. It connects to nothing yet.
func New(c Config) *Model {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	return &Model{cfg: c, client: sdk.NewClient(
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(c.BaseURL),
		option.WithAPIKey(c.Key),
		option.WithMaxRetries(0), // The turn loop retries, visibly.
		option.WithoutOpenTelemetry(),
	)}
}

// Stream sends the request and streams the answer, as model.Model has it.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	watched, w := wire.Begin(ctx, m.cfg.Provider, m.cfg.Key, m.cfg.Idle)
	defer w.End()
	body, err := m.body(r, wire.NewConversation(r, m.own(r.Model)))
	if err != nil { // as of a tool whose schema is no JSON
		return nil, &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the request to the model provider %s could not be written: %v", m.cfg.Provider, err), Err: err}
	}
	var raw *http.Response
	err = m.client.Post(watched, "v1/messages", nil, &raw, option.WithHTTPClient(w), option.WithRequestBody("application/json", body))
	if err != nil {
		return nil, w.Fail(ctx, err)
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: emit, watch: w, sent: len(body)}
	a.limits = wire.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}
