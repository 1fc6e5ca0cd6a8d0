// Package client has what both of OpenAI's APIs share: the request, and the schema of an answer.
package client

import (
	"cmp"
	"context"
	"net/http"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Post sends a request once, with a key as a bearer token. An empty base URL is OpenAI's own.
func Post(watched context.Context, w *transport.Watch, base, key string, body []byte, path ...string) (*http.Response, error) {
	address, err := transport.Address(cmp.Or(base, DefaultBaseURL), path...)
	if err != nil {
		return nil, err
	}
	return w.Post(watched, address, http.Header{"Accept": {"text/event-stream"}}, transport.Bearer(key), body)
}
