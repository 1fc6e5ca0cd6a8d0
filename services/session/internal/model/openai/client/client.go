// Package client sends requests with OpenAI's SDK. It lets the SDK do the request
// and its credentials. It turns off what Fairlead does itself or does not want: retries,
// defaults from the environment, headers about the machine, and the SDK's reader of
// streams, which hides what servers say in other forms.
package client

import (
	"net/http"

	"github.com/openai/openai-go/v3/option"

	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// telemetry are the headers in which the SDK describes itself and the machine.
var telemetry = []string{"Lang", "Package-Version", "Os", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"}

// Service returns the options of a service of the SDK. A service takes none from the
// environment, unlike the SDK's client.
func Service(baseURL, key string) []option.RequestOption {
	if baseURL == "" {
		baseURL = DefaultBaseURL
	}
	opts := []option.RequestOption{
		option.WithBaseURL(baseURL), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "fairlead"), option.WithHeader("Accept", "text/event-stream"),
	}
	for _, name := range telemetry {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+name))
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return opts
}

// Request returns the options of one request: its client, its body, and where the
// answer goes.
func Request(w *wire.Watch, body []byte, answer **http.Response) []option.RequestOption {
	return []option.RequestOption{
		option.WithHTTPClient(w), option.WithRequestBody("application/json", body), option.WithResponseBodyInto(answer),
	}
}
