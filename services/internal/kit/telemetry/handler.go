package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

func newHandler(c Config, w io.Writer) slog.Handler {
	level, _ := c.level() // Validate has said what is wrong with it.
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return traced{slog.NewTextHandler(w, o)}
	}
	return traced{slog.NewJSONHandler(w, o)}
}

// traced adds the ids of the context's span to each line.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }
func (h traced) WithGroup(name string) slog.Handler       { return traced{h.Handler.WithGroup(name)} }

// stray handles the log output of libraries that do not use our logger.
type stray struct{ slog.Handler }

// unasked begins the HTTP client's message about a server that sends more than was requested.
// It quotes the data, so that any contacted host could fill the log.
const unasked = "Unsolicited response"

func (h stray) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, unasked) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
