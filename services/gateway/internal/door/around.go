package door

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// around wraps the handler with the middleware of every request.
func (t *table) around(h http.Handler, policy headers.Policy) (http.Handler, error) {
	guard := http.NewCrossOriginProtection()
	for _, origin := range t.AllowedOrigins {
		if err := guard.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("allowed origin %q: %w", origin, err)
		}
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.CrossOrigin(r.Header.Get("Origin")))
	}))
	h = policy.Around(guard.Handler(h))
	return otelhttp.NewHandler(t.recovered(h), "gateway",
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return spanName(r.Method, r.Pattern) })), nil
}

// spanName keeps the number of span names small, whatever clients request. The pattern "/" is that of the
// outer server.
func spanName(m, pattern string) string {
	if pattern != "" && pattern != "/" {
		return pattern
	}
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, m) {
		return m
	}
	return "HTTP"
}

// recovered answers a panic with 500. It cuts off an answer that has begun, so that it does not look
// complete.
func (t *table) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := &begun{ResponseWriter: w}
		defer func(ctx context.Context) {
			switch p := recover(); {
			case p == nil:
				return
			case p != http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
				t.Log.ErrorContext(ctx, "panic in a request", "method", r.Method, "request_id", w.Header().Get(headers.RequestID), "panic", p, "stack", string(debug.Stack()))
			}
			if began.yes {
				panic(http.ErrAbortHandler)
			}
			problem.Write(w, problem.Internal())
		}(r.Context())
		next.ServeHTTP(began, r)
	})
}

// begun records whether an answer has begun.
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

// Unwrap lets http.ResponseController find further methods of the server's writer.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }
