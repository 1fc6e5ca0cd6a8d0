package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client makes the requests; each has a context with its own end.
var client = &http.Client{}

// reply is an HTTP answer.
type reply struct {
	code   int
	header http.Header
	body   string
}

// call makes a REST request.
func (s *system) call(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	resp := s.do(ctx, t, method, path, body, header...)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

func (s *system) do(ctx context.Context, t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// session creates a session over REST.
func (s *system) session(t *testing.T, agent string) string {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"`+agent+`"}`)
	var answer struct{ Name string }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK || !strings.HasPrefix(answer.Name, "sessions/") {
		t.Fatalf("create a session: %d %s", r.code, r.body)
	}
	return answer.Name
}

// frame is one event of an SSE stream.
type frame struct {
	id, event, data string
}

// field reads a value inside the frame's JSON, by names.
func (f frame) field(names ...string) string {
	var v any
	if err := json.Unmarshal([]byte(f.data), &v); err != nil {
		return "not JSON: " + f.data
	}
	for _, n := range names {
		m, _ := v.(map[string]any)
		v = m[n]
	}
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	default:
		b, _ := json.Marshal(x)
		return string(b)
	}
}

// stream reads an SSE stream until it ends, or see says stop.
func (s *system) stream(t *testing.T, method, path, body string, see func(frame) bool, header ...string) []frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	resp := s.do(ctx, t, method, path, body, append([]string{"Accept", "text/event-stream"}, header...)...)
	defer func() { _ = resp.Body.Close() }()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, "text/event-stream") {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %d %s %s", method, path, resp.StatusCode, got, text)
	}
	var frames []frame
	var f frame
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data += value
		case "":
			if lines.Text() == "" && f.event != "" {
				frames = append(frames, f)
				if see != nil && !see(f) {
					return frames
				}
				f = frame{}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("the stream broke after %s: %v", events(frames), err)
	}
	return frames
}

// turn runs a turn over SSE.
func (s *system) turn(t *testing.T, session, text string) []frame {
	t.Helper()
	return s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"`+text+`"}`, nil)
}

// events are the frames' names, deltas of one kind written once.
func events(frames []frame) string {
	var all []string
	for _, f := range frames {
		if n := len(all); n == 0 || all[n-1] != f.event || !strings.HasSuffix(f.event, "delta") {
			all = append(all, f.event)
		}
	}
	return strings.Join(all, " ")
}

// last is the final frame, which must be turn.finished in the state.
func last(t *testing.T, frames []frame, state string) frame {
	t.Helper()
	if len(frames) == 0 || frames[len(frames)-1].event != "turn.finished" {
		t.Fatalf("the stream did not end with turn.finished: %s", events(frames))
	}
	f := frames[len(frames)-1]
	if got := f.field("turnFinished", "state"); got != "TURN_STATE_"+state {
		t.Fatalf("the turn ended %s, want %s: %s", got, state, f.data)
	}
	return f
}

// results are the finished calls, as tool, outcome and text.
func results(frames []frame) []string {
	var all []string
	for _, f := range frames {
		if f.event != "tool_call.finished" {
			continue
		}
		var e struct {
			ToolCallFinished struct {
				Tool, Outcome string
				Content       []struct{ Text struct{ Text string } }
			}
		}
		_ = json.Unmarshal([]byte(f.data), &e)
		var text strings.Builder
		for _, c := range e.ToolCallFinished.Content {
			text.WriteString(c.Text.Text)
		}
		all = append(all, e.ToolCallFinished.Tool+" "+strings.TrimPrefix(e.ToolCallFinished.Outcome, "TOOL_OUTCOME_")+" "+text.String())
	}
	return all
}
