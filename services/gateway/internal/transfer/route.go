package transfer

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Route is one method on the path of a file.
type Route struct {
	Method string
	// Template is the path for traces and people.
	Template string

	// Open means that the route needs no credential: its request has a secret of its own.
	Open bool

	head    bool              // the route also takes HEAD
	options func(http.Header) // sets further headers of the answer to OPTIONS; may be nil
	pattern *regexp.Regexp
	serve   func(s *Server, w http.ResponseWriter, r *http.Request, names []string) error
	names   []string // what the path names
}

const session = `(sessions/[a-z0-9][a-z0-9-]{0,62})`

var routes = []Route{
	{
		Method: http.MethodGet, Template: "/v1/sessions/{session}:export", pattern: regexp.MustCompile(`^/v1/` + session + `:export$`),
		serve: (*Server).send,
	},
	{
		Method: http.MethodPost, Template: "/v1/sessions:import", pattern: regexp.MustCompile(`^/v1/sessions:import$`),
		serve: (*Server).receive,
	},
	{
		Method: http.MethodGet, Template: "/v1/sessions/{session}/files/{path}", head: true, pattern: filePath,
		serve: (*Server).readFile,
	},
	{
		Method: http.MethodPut, Template: "/v1/sessions/{session}/files/{path}", pattern: filePath,
		serve: (*Server).writeFile,
	},
	{
		Method: http.MethodDelete, Template: "/v1/sessions/{session}/files/{path}", pattern: filePath,
		serve: (*Server).deleteFile,
	},
	{
		Method: http.MethodGet, Template: "/v1/sessions/{session}/files:archive", pattern: regexp.MustCompile(`^/v1/` + session + `/files:archive$`),
		serve: (*Server).archiveFiles,
	},
	{
		Method: http.MethodPost, Template: "/v1/sessions/{session}/files:unpack", pattern: regexp.MustCompile(`^/v1/` + session + `/files:unpack$`),
		serve: (*Server).unpackFiles,
	},
	{
		Method: http.MethodPost, Template: "/v1/files:upload", pattern: regexp.MustCompile(`^/v1/files:upload$`),
		serve: (*Server).uploadForm,
	},
	{
		Method: http.MethodGet, Template: "/v1/files/{file}:content", head: true, pattern: regexp.MustCompile(`^/v1/(files/` + fileID + `):content$`),
		serve: (*Server).readBlob,
	},
	{
		Method: http.MethodPost, Template: "/v1/triggers/{trigger}:fire", Open: true, pattern: regexp.MustCompile(`^/v1/(triggers/` + fileID + `):fire$`),
		serve: (*Server).fire,
	},
	{
		Method: http.MethodPost, Template: "/v1/uploads", pattern: regexp.MustCompile(`^/v1/uploads$`), options: tusOptions,
		serve: (*Server).createUpload,
	},
	{
		Method: http.MethodHead, Template: "/v1/uploads/{file}", pattern: uploadPath, options: tusOptions,
		serve: (*Server).lookUpload,
	},
	{
		Method: http.MethodPatch, Template: "/v1/uploads/{file}", pattern: uploadPath, options: tusOptions,
		serve: (*Server).continueUpload,
	},
	{
		Method: http.MethodDelete, Template: "/v1/uploads/{file}", pattern: uploadPath, options: tusOptions,
		serve: (*Server).endUpload,
	},
}

const fileID = `[a-z0-9][a-z0-9-]{0,62}`

var uploadPath = regexp.MustCompile(`^/v1/uploads/(` + fileID + `)$`)

// filePath matches the path of a file in a workspace, which may have any name.
var filePath = regexp.MustCompile(`(?s)^/v1/` + session + `/files/(.+)$`)

// Routes returns all routes.
func Routes() []Route { return slices.Clone(routes) }

// Match returns the routes at a path, one for each method.
func Match(path string) (found []Route) {
	if !utf8.ValidString(path) { // gRPC cannot transport the name
		return nil
	}
	for _, r := range routes {
		if m := r.pattern.FindStringSubmatch(path); m != nil {
			r.names = m[1:]
			found = append(found, r)
		}
	}
	return found
}

// Takes reports whether the route serves a method.
func (r Route) Takes(method string) bool {
	return method == r.Method || r.head && method == http.MethodHead
}

// Describe answers the method OPTIONS at a path with these routes.
func Describe(w http.ResponseWriter, routes []Route) {
	for _, r := range routes {
		if r.options != nil {
			r.options(w.Header())
		}
	}
	w.Header().Set("Allow", strings.Join(Allow(routes), ", "))
	w.WriteHeader(http.StatusNoContent)
}

// Allow returns the methods of routes in the form of the header Allow.
func Allow(routes []Route) []string {
	methods := []string{http.MethodOptions}
	for _, r := range routes {
		methods = append(methods, r.Method)
		if r.head {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return methods
}
