package door

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAPanicIsAnErrorOfItsRequestAlone(t *testing.T) {
	var log strings.Builder
	doors := &table{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	srv := httptest.NewServer(doors.recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		panic("boom")
	})))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/early")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), "INTERNAL") || strings.Contains(string(body), "boom") {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	late, err := srv.Client().Get(srv.URL + "/late")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Body.Close() }()
	if body, err := io.ReadAll(late.Body); err == nil {
		t.Errorf("an answer that broke off looks whole: %q", body)
	}
	srv.Close()
	if n := strings.Count(log.String(), "boom"); n != 2 {
		t.Errorf("%d panics are in the log, want 2:\n%s", n, &log)
	}
}

func TestSpansHaveFewNames(t *testing.T) {
	for _, c := range []struct{ method, pattern, want string }{
		{"GET", "GET /v1/tools", "GET /v1/tools"}, {"GET", "/", "GET"}, {"GET", "", "GET"}, {"BREW", "", "HTTP"},
	} {
		if got := spanName(c.method, c.pattern); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.method, c.pattern, got, c.want)
		}
	}
}
