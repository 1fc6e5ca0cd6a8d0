// Package door has the table of all that the gateway answers over HTTP. A door is a protocol with paths of its own, such
// as REST, files, MCP or AG-UI. The table knows what holds for every door, so a door is only its paths, what it does
// there and the form of its errors.
//
// A request passes, from the outside in: the span, recovery, headers, cross-origin rules, the request rate, the
// credential, the route (404, 405, OPTIONS), the count of open streams, and then its door. Paths are matched decoded and
// as they are: http.ServeMux would redirect some of them, and has no patterns with verbs such as :interrupt.
package door

import (
	"net/http"
	"slices"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// Door answers the requests of one protocol.
type Door interface {
	// Match returns what the door has for a method at a path; nil if the path is not the door's.
	Match(method, path string) *Route
	// Refuse answers a request with an error, in the form that the door's clients read.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

// Route is what a door has for a method at a path.
type Route struct {
	// Allow has the methods of the path, in the order of the header Allow; empty for a path that leaves them open.
	Allow []string
	// Pattern names the route for people, traces and metrics, such as "GET /v1/sessions/{session}"; "" if there is no name.
	Pattern string
	// Open means that the request needs no credential.
	Open bool
	// Options sets further headers of the answer to the method OPTIONS; nil: there are none.
	Options func(http.Header)
	// Serve answers a request whose caller is known. The door refuses with an error that it returns. It is nil if the path
	// does not take the method.
	Serve func(w http.ResponseWriter, r *http.Request) error
}

// At returns the route of a path that takes some methods.
func At(method, path string, methods []string, serve func(http.ResponseWriter, *http.Request) error) *Route {
	rt := &Route{Allow: methods}
	if slices.Contains(methods, method) {
		rt.Pattern, rt.Serve = method+" "+path, serve
	}
	return rt
}

// Problems is what doors embed whose clients read errors as a google.rpc.Status in JSON.
type Problems struct{}

// Refuse implements Door.
func (Problems) Refuse(w http.ResponseWriter, _ *http.Request, err error) { problem.Write(w, err) }
