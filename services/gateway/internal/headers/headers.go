// Package headers sets the headers that do not depend on an answer's content: caching, security, the request's id,
// and those that let pages of allowed origins call (CORS).
package headers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// RequestID is the header with the id under which the log mentions a request.
const RequestID = "X-Request-Id"

// cacheable are the paths whose answers may be cached, because they have no user's data. Every other answer is
// `no-store`.
var cacheable = map[string]string{"/openapi.json": "public, max-age=60"}

// Lists of CORS. A page may send and read only what they name.
var (
	taken = strings.Join([]string{
		"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "If-Range", "Last-Event-ID", "Range",
		"Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset", "traceparent", "tracestate", "x-api-key",
		"grpc-timeout", "x-grpc-web", "x-user-agent", // gRPC-Web
		"webhook-id", "webhook-timestamp", "webhook-signature", "X-Fairlead-Delivery", "X-GitHub-Delivery", "X-Hub-Signature-256", // deliveries
		"A2A-Extensions", "A2A-Version", "Fairlead-A2A-Depth", // A2A
		"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", // MCP
		"anthropic-beta", "anthropic-dangerous-direct-browser-access", "anthropic-version", "openai-beta", "x-stainless-arch", "x-stainless-helper-method", "x-stainless-lang", // SDKs of models
		"x-stainless-os", "x-stainless-package-version", "x-stainless-retry-count", "x-stainless-runtime", "x-stainless-runtime-version", "x-stainless-timeout",
	}, ", ")
	exposed = strings.Join([]string{
		"Accept-Ranges", "Allow", "Content-Disposition", "Content-Range", "ETag", "Idempotency-Key", "Location", "Retry-After", "WWW-Authenticate", RequestID,
		"Tus-Extension", "Tus-Resumable", "Tus-Version", "Upload-Expires", "Upload-Length", "Upload-Offset",
		"Grpc-Message", "Grpc-Status", "Grpc-Status-Details-Bin", // gRPC-Web
		"Mcp-Session-Id",                                 // MCP
		"request-id", "retry-after-ms", "x-should-retry", // SDKs of models
		"x-vercel-ai-ui-message-stream", // AI SDK
	}, ", ")
)

// preflightSeconds is how long a browser may keep the answer to a preflight request. Chromium keeps it for two hours
// at most.
const preflightSeconds = "7200"

// Policy sets the headers.
type Policy struct {
	// AllowedOrigins are the origins of other hosts' pages that may call.
	AllowedOrigins []string
	// Methods returns the methods that a path takes, as in the header Allow.
	Methods func(path string) []string
}

// Around returns next with the headers of every answer. It answers preflight requests itself.
func (p Policy) Around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(RequestID, id.New())
		h.Set("Cache-Control", cmp.Or(cacheable[r.URL.Path], "no-store"))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		if len(p.AllowedOrigins) > 0 {
			h.Add("Vary", "Origin")
		}
		if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(p.AllowedOrigins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", exposed)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				p.preflight(w, r.URL.Path)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// preflight answers a browser's CORS preflight request. For an unknown path it allows every method, so that the page
// can read the 404 of the request itself.
func (p Policy) preflight(w http.ResponseWriter, path string) {
	methods := p.Methods(path)
	if len(methods) == 0 {
		methods = []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}
	}
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Method")
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers", taken)
	h.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
}

// CheckOrigin returns the fault of an allowed origin, which must have the form that
// browsers send.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host,
		strings.ToLower(origin) != origin:
		return fmt.Errorf("%q is not an origin such as https://app.example.com", origin)
	}
	return nil
}
