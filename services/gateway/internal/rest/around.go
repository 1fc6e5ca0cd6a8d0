package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// around puts around the handler what every request passes.
func (a *api) around(h http.Handler) (http.Handler, error) {
	guard := http.NewCrossOriginProtection()
	for _, origin := range a.cfg.AllowedOrigins {
		if err := guard.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("allowed origin %q: %w", origin, err)
		}
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.CrossOrigin(r.Header.Get("Origin")))
	}))
	h = a.headers(guard.Handler(h))
	return otelhttp.NewHandler(a.recovered(h), "gateway",
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return spanName(r.Method, r.Pattern) })), nil
}

// spanName keeps the names of spans few, whatever a client asks for. The pattern "/" is that of the server around.
func spanName(m, pattern string) string {
	if pattern != "" && pattern != "/" {
		return pattern
	}
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, m) {
		return m
	}
	return "HTTP"
}

// headers sets the headers of every answer, and those that let pages of allowed origins read it.
func (a *api) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		if len(a.cfg.AllowedOrigins) > 0 {
			h.Add("Vary", "Origin")
		}
		origin := r.Header.Get("Origin")
		if origin != "" && slices.Contains(a.cfg.AllowedOrigins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "Idempotency-Key, Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				preflight(w)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// preflight answers the browser's question whether a page may make a request.
func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Idempotency-Key, Last-Event-ID, Traceparent, Tracestate")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// CheckOrigin says what is wrong with an allowed origin; it has to be as browsers send it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host,
		strings.ToLower(origin) != origin:
		return fmt.Errorf("%q is not an origin such as https://app.example.com", origin)
	}
	return nil
}

// recovered answers a panic with 500. An answer that has begun is cut off, so that nobody takes it for whole.
func (a *api) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := &begun{ResponseWriter: w}
		defer func(ctx context.Context) {
			switch p := recover(); {
			case p == nil:
				return
			case p != http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
				a.log.ErrorContext(ctx, "panic in a request", "method", r.Method, "panic", p, "stack", string(debug.Stack()))
			}
			if began.yes {
				panic(http.ErrAbortHandler)
			}
			problem.Write(w, problem.Internal())
		}(r.Context())
		next.ServeHTTP(began, r)
	})
}

// begun knows whether an answer has begun.
type begun struct {
	http.ResponseWriter
	yes bool
}

// WriteHeader implements http.ResponseWriter.
func (b *begun) WriteHeader(code int) {
	b.yes = true
	b.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find what the server's writer can do besides.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }
