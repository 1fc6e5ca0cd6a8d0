package demonstration

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestChanges(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing", "a\nb\n", "a\nb\n", ""},
		{"a line", "a\nb\nc\n", "a\nB\nc\n", "- b\n+ B\n"},
		{"a line more", "a\nc\n", "a\nb\nc\n", "+ b\n"},
		{"everything", "a", "b", "- a\n+ b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := changes(c.before, c.after); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadEvents(t *testing.T) {
	in := ": hello\n\nid: 1\nevent: a\ndata: {\ndata: }\n\nretry: 5\n\nevent:b\ndata:x\n\nevent: cut\ndata: off"
	var got []string
	if err := readEvents(strings.NewReader(in), func(name, data string) error {
		got = append(got, name+"="+data)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a={\n}", "b=x"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stop := errors.New("stop")
	if err := readEvents(strings.NewReader(in), func(string, string) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestRunTurnOverREST(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		events int
		err    string
	}{
		{"a turn", 200, "event: text.delta\ndata: {\"seq\":\"1\",\"textDelta\":{\"text\":\"a\"}}\n\nevent: turn.finished\ndata: {\"seq\":\"2\",\"turnFinished\":{\"state\":\"TURN_STATE_COMPLETE\"}}\n\n", 2, ""},
		{"a stream that ends too early", 200, "event: text.delta\ndata: {\"seq\":\"1\"}\n\n", 1, "ended before the turn"},
		{"a stream that breaks off", 200, "event: error\ndata: {\"code\":14,\"message\":\"The store is away.\"}\n\n", 0, "The store is away."},
		{"an error of the turn is an event", 200, "event: error\ndata: {\"seq\":\"1\",\"error\":{\"message\":\"m\"}}\n\nevent: turn.finished\ndata: {\"turnFinished\":{}}\n\n", 2, ""},
		{"what is no event", 200, "event: a\ndata: {\n\n", 0, "event a"},
		{"a refusal", 404, `{"message":"There is none."}`, 0, "404 Not Found: There is none."},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/sessions/s/turns:stream" || r.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("asked for %s", r.URL)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			seen := 0
			end, err := rest{client: server.Client(), url: server.URL}.runTurn(t.Context(), "sessions/s", "hi", func(*sessionv1.Event) { seen++ })
			if seen != c.events || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && end == nil {
				t.Errorf("%d events, end %v, error %v", seen, end, err)
			}
		})
	}
}
