// Package responses streams from models with OpenAI's Responses API. The server
// stores nothing: every request has the whole conversation, and the model's reasoning
// comes and goes back in encrypted form.
package responses

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// Config configures the access to a model.
type Config struct {
	// Provider is the configured name. Reasoning is stored and returned under it;
	// errors contain it, too.
	Provider string
	// BaseURL with its /v1; OpenAI's own API when empty.
	BaseURL string
	// Key is sent as a bearer token; empty for servers that need none.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// ReasoningEffort is sent unchanged unless it is empty.
	ReasoningEffort string
	// Replay selects the reasoning that goes back to the model.
	Replay Replay
	// MaxOutputTokens is the model's own limit, at least 1.
	MaxOutputTokens int64
	// ContextTokens is the model's context; 0 when not known.
	ContextTokens int64
}

// Replay selects the messages of the model whose reasoning goes back.
type Replay int

// Selections of messages.
const (
	ReplayLoop Replay = iota // those of the current tool loop
	ReplayAll
	ReplayNone
)

// Model streams from one provider. It is safe for concurrent use.
type Model struct {
	cfg     Config
	learned atomic.Int32 // the form that the model accepts, as far as known
}

var _ model.Model = (*Model)(nil)

// New returns a Model. It opens no connection yet.
func New(c Config) *Model {
	return &Model{cfg: c}
}

// form is what a request leaves out because the server refused it.
type form int32

const (
	noEncrypted form = 1 << iota // models that do not reason
	noSummary                    // models without, and organizations that are not verified
	noReplay                     // reasoning that the server no longer accepts
)

// Stream implements model.Model. It repeats a request that the server refuses for
// what it asks about reasoning, without that.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	begun := false
	counted := func(d model.Delta) error {
		begun = true
		return emit(d)
	}
	f := form(m.learned.Load())
	for {
		in, err := m.write(r, f)
		if err != nil { // such as that of a tool whose schema is not JSON
			return nil, &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the request to the model provider %s could not be written: %v", m.cfg.Provider, err), Err: err}
		}
		resp, err := m.post(ctx, r, in.buf, counted)
		if err == nil {
			m.learned.Store(int32(f &^ noReplay)) // the next reasoning may be accepted
			return resp, nil
		}
		next := f | refusedForm(err)
		if begun || next == f {
			return nil, prompt.Named(err, in.sent)
		}
		f = next
	}
}

var (
	aboutReplay    = regexp.MustCompile(`(?i)encrypted content.*could not be|without its required|\bitem with id\b.*not found|type 'reasoning'`)
	aboutEncrypted = regexp.MustCompile(`(?i)encrypted|\binclude\b`)
	aboutSummary   = regexp.MustCompile(`(?i)reasoning[._ ]summar`)
)

// refusedForm returns what the server refused; 0 when the refusal is about something
// else.
func refusedForm(err error) form {
	var e *model.Error
	var told *transport.ReportedError
	if !errors.As(err, &e) || e.Kind != model.Refused || !errors.As(err, &told) {
		return 0
	}
	switch {
	case aboutReplay.MatchString(told.Message):
		return noReplay
	case aboutSummary.MatchString(told.Message):
		return noSummary
	case aboutEncrypted.MatchString(told.Message):
		return noEncrypted
	}
	return 0
}

// post makes one request.
func (m *Model) post(ctx context.Context, r model.Request, body []byte, emit func(model.Delta) error) (*model.Response, error) {
	watched, w := transport.Begin(ctx, m.cfg.Provider, m.cfg.Key, m.cfg.Idle)
	defer w.End()
	raw, err := client.Post(watched, w, m.cfg.BaseURL, m.cfg.Key, body, "responses")
	if err != nil {
		return nil, w.Fail(ctx, err)
	}
	defer func() { _ = raw.Body.Close() }() // The answer is complete or void by now.
	a := &answer{provider: m.cfg.Provider, model: r.Model, emit: w.Gather(emit), watch: w, sent: len(body)}
	a.limits = transport.Limits{Context: m.cfg.ContextTokens, Output: m.cfg.MaxOutputTokens}
	return a.read(ctx, raw.Body)
}
