// Package openai streams from models that speak OpenAI's Chat Completions API,
// OpenAI's own and those of compatible servers, whose habits differ: it takes
// calls that come whole, without index, with repeated names or with empty ids.
package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says how a model is reached.
type Config struct {
	// Provider is the configured name, for errors.
	Provider string
	// BaseURL with its /v1; DefaultBaseURL when empty.
	BaseURL string
	// Key is sent as a bearer token; empty for servers that want none.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// LegacyMaxTokens sends max_tokens instead of max_completion_tokens.
	LegacyMaxTokens bool
	// ReasoningEffort is sent as it is; nothing when empty.
	ReasoningEffort string
	// MaxOutputTokens is the model's own limit, at least 1.
	MaxOutputTokens int64
}

// Model streams from one provider. It is safe for concurrent use.
type Model struct{ cfg Config }

var _ model.Model = (*Model)(nil)

// New makes a Model. It connects to nothing yet.
func New(c Config) *Model {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	return &Model{cfg: c}
}

// Stream sends the request and streams the answer, as model.Model has it. Usage
// is estimated when the server tells none.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	watched, w := wire.Begin(ctx, m.cfg.Provider, m.cfg.Idle)
	defer w.End()
	lines := &doer{watch: w}
	cfg := sdk.DefaultConfig(m.cfg.Key)
	cfg.BaseURL, cfg.HTTPClient = m.cfg.BaseURL, lines
	req := m.request(r)
	stream, err := sdk.NewClientWithConfig(cfg).CreateChatCompletionStream(watched, req)
	if err != nil {
		return nil, m.failure(ctx, w, err)
	}
	defer func() { _ = stream.Close() }() // The answer is complete or void by now.
	a := answer{provider: m.cfg.Provider, emit: emit}
	for {
		raw, err := stream.RecvRaw()
		switch {
		case errors.Is(err, io.EOF) && (lines.done || a.finish != ""):
			return a.end(req)
		case errors.Is(err, io.EOF):
			return nil, m.failure(ctx, w, nil)
		case err != nil:
			return nil, m.failure(ctx, w, err)
		}
		if err := a.chunk(raw); err != nil {
			return nil, m.passed(ctx, w, err)
		}
	}
}

// passed gives errors of emit as they are, and maps errors that the stream told.
func (m *Model) passed(ctx context.Context, w *wire.Watch, err error) error {
	var told *toldError
	if errors.As(err, &told) {
		return m.failure(ctx, w, told.api)
	}
	return err
}

// doer is the HTTP client of one request. It lets through only the lines of the
// stream that carry data: the SDK stumbles over comments.
type doer struct {
	watch *wire.Watch
	done  bool // [DONE] came
}

// Do sends the request.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.watch.Do(req)
	if err == nil && resp.StatusCode/100 == 2 {
		resp.Body = newLines(resp.Body, &d.done)
	}
	return resp, err
}
