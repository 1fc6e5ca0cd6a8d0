package egress

import (
	"fmt"
	"net/http"
	"testing"
)

// An answer is what the host sent: a kind that it did not name is not guessed, also behind
// an answer that came before.
func TestAnAnswerHasNoKindThatTheHostDidNotName(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) }, func(w *world, _ *Options) {
		w.other = func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/early" {
				rw.WriteHeader(http.StatusEarlyHints)
			}
			rw.Header()["Content-Type"] = nil
			if r.URL.Path == "/named" {
				rw.Header().Set("Content-Type", "text/x")
			}
			fmt.Fprint(rw, "<html>")
		}
	})
	for path, want := range map[string]string{"/none": "", "/early": "", "/named": "text/x"} {
		resp, err := w.client(w.roots).Get(fmt.Sprintf("http://api.example.com:%d%s", port(w.web), path))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); got != want {
			t.Errorf("%s: the answer is %q, want %q", path, got, want)
		}
	}
}
