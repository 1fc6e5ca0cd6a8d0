// Package modelapi knows the paths of Anthropic's and OpenAI's model APIs, and the form of their errors. The
// gateway and the session service serve these APIs together.
package modelapi

import (
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Form is whose API it is.
type Form int

// The forms.
const (
	Anthropic Form = iota
	OpenAI
)

// Operation is what a request asks for.
type Operation int

// The operations. Unknown is a path of the APIs that is not served.
const (
	Unknown         Operation = iota
	Messages                  // Anthropic's POST /v1/messages
	CountTokens               // Anthropic's POST /v1/messages/count_tokens
	ChatCompletions           // OpenAI's POST /v1/chat/completions
	Responses                 // OpenAI's POST /v1/responses
	ListModels                // GET /v1/models of both
	GetModel                  // GET /v1/models/{model} of both
)

// Route is what a path says.
type Route struct {
	Form
	Operation
	// Session is the session whose budget pays, too, as `sessions/{session}`; empty: none.
	Session string
	// Model is the model of GetModel.
	Model string
	// Method is the method that the path takes, and Pattern the path for people and for traces.
	Method, Pattern string
}

var paths = regexp.MustCompile(`^/(anthropic|openai)(/sessions/[a-z0-9][a-z0-9-]{0,62})?(/v1/.+)$`)

// Match returns the route of a path, and false for a path of something else.
func Match(path string) (Route, bool) {
	m := paths.FindStringSubmatch(path)
	if m == nil || !utf8.ValidString(path) { // gRPC cannot transport the name
		return Route{}, false
	}
	r := Route{Session: strings.TrimPrefix(m[2], "/")}
	if m[1] == "openai" {
		r.Form = OpenAI
	}
	r.find(m[3])
	prefix := "/" + m[1]
	if r.Session != "" {
		prefix += "/sessions/{session}"
	}
	if r.Operation != Unknown {
		r.Pattern = prefix + r.Pattern
	}
	return r, true
}

// operations are the paths that take a POST.
var operations = map[Form]map[string]Operation{
	Anthropic: {"/v1/messages": Messages, "/v1/messages/count_tokens": CountTokens},
	OpenAI:    {"/v1/chat/completions": ChatCompletions, "/v1/responses": Responses},
}

func (r *Route) find(path string) {
	r.Method, r.Pattern = http.MethodPost, path
	if op, ok := operations[r.Form][path]; ok {
		r.Operation = op
		return
	}
	r.Method = http.MethodGet
	if path == "/v1/models" {
		r.Operation = ListModels
	} else if name, ok := strings.CutPrefix(path, "/v1/models/"); ok && name != "" {
		r.Operation, r.Model, r.Pattern = GetModel, name, "/v1/models/{model}"
	}
}
