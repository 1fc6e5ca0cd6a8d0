// Package openaiagents speaks the wire of OpenAI's Agents API with a running server: by hand, and with the official clients.
package openaiagents

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

const base = "/openai/v1/agents"

// server is all services.
type server struct{ *wiretest.Server }

func configuration() map[string]any { return map[string]any{"model": "scripted:agents"} }

// serve runs a server that everyone may use.
func serve(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), nil)}
}

// serveUsers runs a server with an operator and a user.
func serveUsers(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_OPERATOR, "bob": commonv1.Role_ROLE_USER})}
}

// spawn runs a server that a test may kill.
func spawn(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Spawn(t, configuration())}
}

// object is a JSON object of the wire.
type object map[string]any

func (o object) at(names ...string) any {
	var v any = map[string]any(o)
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (o object) text(names ...string) string { s, _ := o.at(names...).(string); return s }

// list returns the objects of a list.
func (o object) list(names ...string) (out []object) {
	every, _ := o.at(names...).([]any)
	for _, v := range every {
		m, _ := v.(map[string]any)
		out = append(out, m)
	}
	return out
}

// must makes a request that succeeds.
func (s *server) must(t *testing.T, method, path, body string, header ...string) object {
	t.Helper()
	code, text := s.Call(t, method, base+path, body, header...)
	out := object{}
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return out
}

const (
	hosted  = `"environment":{"type":"openai_hosted"}`
	inline  = `"agent":{"model":"scripted:agents","instructions":"Help.","tools":[{"type":"function","name":"weather","description":"Says the weather.","parameters":{"type":"object"}}]}`
	weather = `{"type":"function","name":"weather","description":"Says the weather.","parameters":{"type":"object"}}`
)

// begin makes a session and returns its id.
func (s *server) begin(t *testing.T, header ...string) string {
	t.Helper()
	return s.must(t, "POST", "/sessions", "{"+inline+","+hosted+"}", header...).text("id")
}

// send sends events, as JSON.
func (s *server) send(t *testing.T, session, events string, header ...string) {
	t.Helper()
	if code, text := s.Call(t, "POST", base+"/sessions/"+session+"/events", `{"events":[`+events+`]}`, header...); code != http.StatusAccepted || text != "" {
		t.Fatalf("%s: %d %s", events, code, text)
	}
}

func message(text string) string {
	return fmt.Sprintf(`{"type":"agent.session.input.message","input":[{"role":"user","content":[{"type":"input_text","text":%q}]}]}`, text)
}

// stream is an open stream of events.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
	last  string // the id of the last event
	done  bool   // it ended with [DONE]
}

// follow opens a stream: of a session, or with a body of a new one.
func (s *server) follow(t *testing.T, method, path, body string, header ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	resp := s.Do(ctx, t, method, base+path, body, append(header, "Accept", "application/json")...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		cancel()
		t.Fatalf("the stream: %d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	out := &stream{t: t, lines: lines, close: func() { cancel(); _ = resp.Body.Close() }}
	t.Cleanup(out.close)
	return out
}

// events opens the stream of a session, which begins with its state.
func (s *server) events(t *testing.T, session string, header ...string) *stream {
	t.Helper()
	st := s.follow(t, "GET", "/sessions/"+session+"/events", "", header...)
	if !slices.Contains(header, "Last-Event-ID") {
		if e, ok := st.next(); !ok || !strings.HasPrefix(kind(e), "idle") {
			t.Fatalf("the stream begins with %v", e)
		}
	}
	return st
}

// next returns the next event; false at the end.
func (s *stream) next() (object, bool) {
	for s.lines.Scan() {
		line := s.lines.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			s.last = rest
		}
		rest, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if rest == "[DONE]" {
			s.done = true
			return nil, false
		}
		out := object{}
		if err := json.Unmarshal([]byte(rest), &out); err != nil || out.text("type") == "" || out.text("event_id") == "" {
			s.t.Fatalf("an event is %s", rest)
		}
		return out, true
	}
	return nil, false
}

// until returns the events up to one of a type.
func (s *stream) until(want string) (out []object) {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended before %s, after %v: %v", want, kinds(out), s.lines.Err())
		}
		out = append(out, e)
		if kind(e) == want {
			return out
		}
	}
}

func kind(e object) string { return strings.TrimPrefix(e.text("type"), "agent.session.") }

// kinds names events, each run of equal ones once.
func kinds(events []object) string {
	var out []string
	for _, e := range events {
		name := kind(e)
		if strings.HasPrefix(name, "turn.item.") {
			name += ":" + e.text("item", "type")
		}
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// last returns the last event of a type.
func last(t *testing.T, events []object, want string) object {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if kind(e) == want {
			return e
		}
	}
	t.Fatalf("there is no %s in %s", want, kinds(events))
	return nil
}

// said returns the final answer in events, as the official helpers find it.
func said(events []object) string {
	var out strings.Builder
	for _, e := range events {
		if it := (object)(mapOf(e["item"])); kind(e) == "turn.item.done" && it.text("type") == "message" && it.text("status") == "completed" && it.text("phase") != "commentary" {
			for _, part := range it.list("content") {
				out.WriteString(part.text("text"))
			}
		}
	}
	return out.String()
}

func mapOf(v any) map[string]any { m, _ := v.(map[string]any); return m }
