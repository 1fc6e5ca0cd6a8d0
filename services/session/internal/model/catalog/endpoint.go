package catalog

import (
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/openai"
)

// Endpoint is where a provider serves its own wire, for requests that are passed on
// unchanged. Its zero value is that of a provider without one.
type Endpoint struct {
	// BaseURL as in the configuration: without /v1 for kind anthropic, with it for kind
	// openai.
	BaseURL string
	// Key of the provider; empty if it needs none.
	Key config.Secret
	// Token of the provider, in place of a key.
	Token config.Secret
	// Version of the API of kind anthropic.
	Version string
	// Chat and Responses say which APIs a provider of kind openai serves.
	Chat, Responses bool
	// Missing says what to do about a missing key; empty if none is missing.
	Missing string
}

// defaultOpenAIBaseURL is OpenAI's own API.
const defaultOpenAIBaseURL = "https://api.openai.com/v1"

// endpoint returns where a provider serves its wire.
func (c Config) endpoint(p *provider) Endpoint {
	e := Endpoint{BaseURL: strings.TrimRight(p.BaseURL, "/"), Key: p.key, Token: p.token, Version: p.APIVersion}
	switch {
	case p.Kind == KindScripted, p.Platform != "": // which have another wire
		return Endpoint{}
	case p.key == "" && p.token == "" && !p.NoKey:
		e.Missing = p.keyHint(c.Section)
	}
	if p.Kind == KindOpenAI {
		api := openai.Config{BaseURL: p.BaseURL, API: p.API}
		e.Chat, e.Responses = api.Serves(openai.Chat), api.Serves(openai.Responses)
	}
	if e.BaseURL == "" {
		e.BaseURL = map[string]string{KindAnthropic: anthropic.DefaultBaseURL, KindOpenAI: defaultOpenAIBaseURL}[p.Kind]
	}
	return e
}
