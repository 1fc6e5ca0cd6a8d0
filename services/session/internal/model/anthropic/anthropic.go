// Package anthropic streams from models with Anthropic's Messages API: at Anthropic,
// at compatible servers, and at Google Vertex AI and Amazon Bedrock.
package anthropic

import (
	"context"
	"fmt"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// Limits are a model's own.
type Limits struct {
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
	client *Client
	limits Limits
}

var _ model.Model = (*Model)(nil)

// Model returns a model of the client's provider.
func (c *Client) Model(l Limits) *Model { return &Model{client: c, limits: l} }

// Stream implements model.Model.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	access := m.client.access
	watched, w := transport.Begin(ctx, access.Provider, access.secret(), access.Idle)
	defer w.End()
	c := prompt.New(r, m.own(r.Model))
	body, err := m.body(r, c)
	if err != nil { // such as that of a tool whose schema is not JSON
		return nil, &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the request to the model provider %s could not be written: %v", access.Provider, err), Err: err}
	}
	raw, err := m.client.post(watched, w, r.Model, body)
	if err != nil {
		return nil, prompt.Named(w.Fail(ctx, err), sent(c))
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: access.Provider, model: r.Model, emit: w.Gather(emit), watch: w, sent: len(body)}
	a.limits = transport.Limits{Context: m.limits.ContextTokens, Output: m.limits.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}
