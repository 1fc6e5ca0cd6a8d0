package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
)

const open = `{"open":{"session":"sessions/s1"}}` + "\n"

// talk opens a conversation whose further inputs are written to the returned pipe while answers are read.
func talk(t *testing.T, url string) (*io.PipeWriter, *http.Response) {
	t.Helper()
	body, in := io.Pipe()
	t.Cleanup(func() { _ = in.Close() })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/sessions:converse", io.MultiReader(strings.NewReader(open), body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return in, resp
}

func TestAConversationGoesBothWaysAtOnce(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	in, resp := talk(t, srv.URL)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != "application/x-ndjson" {
		t.Fatalf("status %d, Content-Type %q", resp.StatusCode, ct)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, c := range []struct{ in, want string }{
		{"", `{"result":{"progress":{"seq":"1"}}}`},
		{`{"createTurn":{"parent":"sessions/s1","text":"hi","requestId":"k1"}}` + "\n", `{"result":{"event":{"firstSeq":"2","seq":"2",`},
		{"\n  \n" + `{"interrupt":{"name":"sessions/s1"}}` + "\r\n", `{"result":{"event":{"firstSeq":"3","seq":"3",`},
	} {
		if _, err := io.WriteString(in, c.in); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), c.want) {
			t.Fatalf("after %q: %q, want %q (%v)", c.in, lines.Text(), c.want, lines.Err())
		}
	}
	if m, _ := f.last(); m.(*sessionv1.ConverseRequest).GetInterrupt() == nil {
		t.Errorf("the last input was %v", m)
	}
	_ = in.Close()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
}

func TestABadInputEndsAConversationWithAnError(t *testing.T) {
	srv := serve(t, &fake{}, func(c *gateway.Config) { c.MaxBody = 4 << 10 })
	for _, c := range []struct{ name, in, reason, words string }{
		{"an unknown field", `{"shout":{}}` + "\n", "BODY_MALFORMED", "input 2: line 1, column 2"},
		{"an object over two lines", "{\n}\n", "BODY_MALFORMED", "input 2"},
		{"half an object at the end", `{"interrupt"`, "BODY_MALFORMED", "input 2"},
		{"a line without end", strings.Repeat("x", 5<<10), "BODY_TOO_LARGE", "4096"},
		{"an input that breaks a rule", `{"createTurn":{"parent":"sessions/s1"}}` + "\n", "INVALID_REQUEST", "text or content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, resp := talk(t, srv.URL)
			lines := bufio.NewScanner(resp.Body)
			if !lines.Scan() {
				t.Fatal("the conversation does not open", lines.Err())
			}
			// The gateway may end the stream, and the connection with it, before it has read all of the input.
			_, _ = io.WriteString(in, c.in)
			_ = in.Close()
			if !lines.Scan() {
				t.Fatalf("no answer: %v", lines.Err())
			}
			got := strings.TrimSuffix(strings.TrimPrefix(lines.Text(), `{"error":`), "}")
			if p := problemOf(t, got); p.reason() != c.reason || !strings.Contains(p.Message, c.words) {
				t.Errorf("got %s", lines.Text())
			}
		})
	}
}

func TestAConversationIsOneRequestLikeOthers(t *testing.T) {
	srv := serve(t, &fake{})
	got := do(t, srv, request{"POST", "/v1/sessions:converse", open, http.Header{"Idempotency-Key": {"k1"}}})
	if p := problemOf(t, got.body); got.code != http.StatusBadRequest || p.reason() != "BAD_IDEMPOTENCY_KEY" {
		t.Errorf("with a key of its own: status %d: %s", got.code, got.body)
	}
	got = do(t, srv, request{"POST", "/v1/sessions:converse", open, http.Header{"Content-Type": {"text/plain"}}})
	if got.code != http.StatusUnsupportedMediaType {
		t.Errorf("as plain text: status %d: %s", got.code, got.body)
	}
	got = do(t, srv, request{"POST", "/v1/sessions:converse", `{"opne":{}}`, nil})
	if p := problemOf(t, got.body); got.code != http.StatusBadRequest || !strings.Contains(p.Message, "input 1: line 1, column 2") {
		t.Errorf("with a bad first input: status %d: %s", got.code, got.body)
	}
	got = do(t, srv, request{"POST", "/v1/sessions:converse", open, nil})
	if got.code != http.StatusOK || got.body != `{"result":{"progress":{"seq":"1"}}}`+"\n" {
		t.Errorf("all at once: status %d: %s", got.code, got.body)
	}
}

func TestAClientThatGoesEndsItsConversation(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	_, resp := talk(t, srv.URL)
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() {
		t.Fatal("the conversation does not open", lines.Err())
	}
	_ = resp.Body.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		srv.Close() // waits for the handler
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the handler goes on without its client")
	}
}
