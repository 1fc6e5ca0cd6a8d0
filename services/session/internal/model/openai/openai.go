// Package openai streams from models with OpenAI's two APIs: the Responses API, and
// the Chat Completions API, which compatible servers have. See package responses for
// the former. For the latter it accepts the variants of these servers, such as calls
// that come whole, without index, with repeated names or with empty ids, and returns
// reasoning to servers that require it.
package openai

import (
	"net/url"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/responses"
)

// APIs of a provider.
const (
	Responses = "responses"
	Chat      = "chat"
)

// Config configures the access to a model.
type Config struct {
	// Provider is the configured name. Reasoning is stored and returned under it;
	// errors contain it, too.
	Provider string
	// BaseURL with its /v1; OpenAI's own API when empty.
	BaseURL string
	// API is Responses or Chat; when empty, Responses for OpenAI's own hosts and Chat
	// for all others.
	API string
	// Key is sent as a bearer token; empty for servers that need none.
	Key string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
	// LegacyMaxTokens sends max_tokens instead of max_completion_tokens, in the Chat
	// Completions API.
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

// Serves reports whether the provider serves an API for requests that are passed on. OpenAI's own hosts serve both,
// unless the configuration names one.
func (c Config) Serves(api string) bool {
	return c.api() == api || c.API == "" && c.api() == Responses
}

// New returns a model. It opens no connection yet.
func New(c Config) model.Model {
	if c.api() == Chat {
		return newChat(c)
	}
	return responses.New(responses.Config{
		Provider: c.Provider, BaseURL: c.BaseURL, Key: c.Key, Idle: c.Idle, ReasoningEffort: c.ReasoningEffort,
		Replay:          map[string]responses.Replay{Always: responses.ReplayAll, Never: responses.ReplayNone}[c.Reasoning],
		MaxOutputTokens: c.MaxOutputTokens, ContextTokens: c.ContextTokens,
	})
}

// api returns the API to speak. OpenAI has hosts for regions beside its own.
func (c Config) api() string {
	if c.API != "" {
		return c.API
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return Chat
	}
	if host := strings.ToLower(u.Hostname()); c.BaseURL == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") {
		return Responses
	}
	return Chat
}
