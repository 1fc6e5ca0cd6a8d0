// Package anthropic streams from models with Anthropic's Messages API.
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
	cfg    Config
	client sdk.Client
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It opens no connection yet.
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
	var raw *http.Response
	err = m.client.Post(watched, "v1/messages", nil, &raw, option.WithHTTPClient(w), option.WithRequestBody("application/json", body))
	if err != nil {
		return nil, wire.Named(w.Fail(ctx, err), sent(c))
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: emit, watch: w, sent: len(body)}
	a.limits = wire.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}
