package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { CloseIdle() }))
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"nothing", nil, 0},
		{"seconds", map[string]string{"retry-after": "3"}, 3 * time.Second},
		{"a part of a second", map[string]string{"retry-after": "0.5"}, 500 * time.Millisecond},
		{"milliseconds come first", map[string]string{"retry-after": "3", "retry-after-ms": "20"}, 20 * time.Millisecond},
		{"a date", map[string]string{"retry-after": "Sat, 21 Nov 2026 12:01:00 GMT"}, time.Minute},
		{"a date that has passed", map[string]string{"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0},
		{"nonsense", map[string]string{"retry-after": "soon"}, 0},
		{"less than nothing", map[string]string{"retry-after": "-4"}, 0},
		{"no number", map[string]string{"retry-after": "NaN"}, 0},
		{"more than a day", map[string]string{"retry-after": "1e300"}, 24 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tt.header {
				h.Set(k, v)
			}
			if got := RetryAfter(h, now); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestQuoteHidesTheKeyAndIsShort(t *testing.T) {
	got := Quote("bad  key\nsk-1 "+strings.Repeat("é", 400), "sk-1")
	if !strings.HasPrefix(got, "bad key [key] é") || len([]rune(got)) != 301 {
		t.Errorf("got %q", got)
	}
}

// post makes a request through a Watch and reads the answer to its end.
func post(ctx context.Context, t *testing.T, url string, idle time.Duration) error {
	t.Helper()
	watched, w := Begin(ctx, "fake", "", idle)
	t.Cleanup(w.End)
	resp, err := w.Post(watched, url, nil, Bearer("k"), []byte("{}"))
	if err != nil {
		return w.Fail(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return w.Fail(ctx, err)
	}
	return nil
}

func TestWatch(t *testing.T) {
	chunk := make([]byte, 1<<20)
	tests := []struct {
		name   string
		serve  func(http.ResponseWriter, *http.Request)
		idle   time.Duration
		kind   model.ErrorKind
		midway bool
		want   string
	}{
		{"a server that never answers is silent", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
			<-r.Context().Done()
		}, 50 * time.Millisecond, model.Unavailable, false, "was silent for 50ms"},
		{"a redirection is not followed", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/else", http.StatusFound) }, time.Minute, model.Refused, false, "redirection"},
		{"a stream without end is ended", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 2 * maxStream / len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, time.Minute, model.Refused, true, "sent more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(tt.serve))
			t.Cleanup(s.Close)
			err := post(t.Context(), t, s.URL, tt.idle)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Midway != tt.midway || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got %v", err)
			}
			CloseIdle()
		})
	}
}
