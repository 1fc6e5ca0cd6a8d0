package transfer

import (
	"net/http"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/gateway/internal/door"
)

// Route is one method on the path of a file.
type Route struct {
	Method string
	// Template is the path for traces and people.
	Template string

	open    bool              // it needs no credential: its request has a secret of its own
	head    bool              // the route also takes HEAD
	options func(http.Header) // sets further headers of the answer to OPTIONS; may be nil
	pattern *regexp.Regexp
	serve   func(s *Server, w http.ResponseWriter, r *http.Request, names []string) error
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
		Method: http.MethodPost, Template: "/v1/triggers/{trigger}:fire", open: true, pattern: regexp.MustCompile(`^/v1/(triggers/` + fileID + `):fire$`),
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

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	if !utf8.ValidString(path) { // gRPC cannot transport the name
		return nil
	}
	found := &door.Route{}
	for _, on := range routes {
		m := on.pattern.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		found.Allow, found.Options = append(found.Allow, on.Method), on.options
		if on.head {
			found.Allow = append(found.Allow, http.MethodHead)
		}
		if method == on.Method || on.head && method == http.MethodHead {
			found.Pattern, found.Open = on.Method+" "+on.Template, on.open
			found.Serve = func(w http.ResponseWriter, r *http.Request) error { return s.on(w, r, on, m[1:]) }
		}
	}
	if len(found.Allow) == 0 {
		return nil
	}
	found.Allow = append(found.Allow, http.MethodOptions)
	slices.Sort(found.Allow)
	return found
}
