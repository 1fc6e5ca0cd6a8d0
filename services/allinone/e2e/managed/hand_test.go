package managed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const base = "/anthropic/v1"

// object is a JSON object of the wire.
type object map[string]any

func (o object) text(names ...string) string {
	var v any = map[string]any(o)
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, _ := v.(string)
	return s
}

// list returns the objects of a page.
func (o object) list() (out []object) {
	all, _ := o["data"].([]any)
	for _, v := range all {
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

// begin makes an agent, an environment and a session, and returns the id of the session.
func (s *server) begin(t *testing.T, tools string, header ...string) string {
	t.Helper()
	agent := s.must(t, "POST", "/agents", `{"name":"Helper","model":"scripted:agents","system":"Help.","tools":`+tools+`}`, header...)
	env := s.must(t, "POST", "/environments", `{"name":"quickstart","config":{"type":"cloud","networking":{"type":"unrestricted"}}}`, header...)
	return s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent":%q,"environment_id":%q,"title":"Try"}`, agent.text("id"), env.text("id")), header...).text("id")
}

const toolset = `[{"type":"agent_toolset_20260401"}]`

// stream is an open stream of events.
type stream struct {
	beats int // heartbeats so far
	t     *testing.T
	lines *bufio.Scanner
	close func()
	last  string // the id of the last event that had one
}

func (s *server) follow(t *testing.T, session, query string, header ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	resp := s.Do(ctx, t, "GET", base+"/sessions/"+session+"/events/stream"+query, "", append(header, "Accept", "application/json")...)
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

// next returns the next event; false at the end.
func (s *stream) next() (object, bool) {
	var name string
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == ": ping" {
			s.beats++
		}
		if rest, ok := strings.CutPrefix(line, "event: "); ok {
			name = rest
		}
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			s.last = rest
		}
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			out := object{}
			if err := json.Unmarshal([]byte(rest), &out); err != nil || out.text("type") != name {
				s.t.Fatalf("%q: %s", name, rest)
			}
			return out, true
		}
	}
	return nil, false
}

// until returns the events up to one of a type.
func (s *stream) until(kind string) (out []object) {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended before %s, after %v: %v", kind, kinds(out), s.lines.Err())
		}
		out = append(out, e)
		if e.text("type") == kind {
			return out
		}
	}
}

func kinds(events []object) string {
	var out []string
	for _, e := range events {
		out = append(out, e.text("type"))
	}
	return strings.Join(out, " ")
}

func (s *server) say(t *testing.T, session, text string, header ...string) object {
	t.Helper()
	return s.must(t, "POST", "/sessions/"+session+"/events", fmt.Sprintf(`{"events":[{"type":"user.message","content":[{"type":"text","text":%q}]}]}`, text), header...)
}

// last returns the last event of a type.
func last(t *testing.T, events []object, kind string) object {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if e.text("type") == kind {
			return e
		}
	}
	t.Fatalf("there is no %s in %s", kind, kinds(events))
	return nil
}

func said(e object) string {
	content, _ := e["content"].([]any)
	var out strings.Builder
	for _, b := range content {
		m, _ := b.(map[string]any)
		text, _ := m["text"].(string)
		out.WriteString(text)
	}
	return out.String()
}

const oneTool = "user.message session.status_running user.message span.model_request_start agent.message agent.tool_use agent.tool_result span.model_request_end " +
	"span.model_request_start agent.message span.model_request_end session.status_idle"

func TestTheQuickstartByHand(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	key := []string{"Authorization", "Bearer " + s.Keys["ann"]}
	id := s.begin(t, toolset, key...)
	st := s.follow(t, id, "", key...)
	sent := s.say(t, id, "tool, please", key...).list()[0]
	if sent["processed_at"] != nil || !strings.HasPrefix(sent.text("id"), "sevt_") {
		t.Errorf("the answer to a message is %v", sent)
	}
	events := st.until("session.status_idle")
	if got := kinds(events); got != oneTool {
		t.Errorf("the events are\n%s", got)
	}
	if got := said(last(t, events, "agent.message")); got != "It says 9007199254740993" {
		t.Errorf("the agent says %q", got)
	}
	if events[0].text("id") != sent.text("id") || events[2].text("id") != sent.text("id") || events[2]["processed_at"] == nil {
		t.Errorf("the message comes as %v and %v", events[0], events[2])
	}
	if got := last(t, events, "session.status_idle").text("stop_reason", "type"); got != "end_turn" {
		t.Errorf("it stops because of %q", got)
	}
	if got := s.must(t, "GET", "/sessions/"+id, "", key...); got.text("status") != "idle" || got.text("agent", "system") != "Help." {
		t.Errorf("the session is %v", got)
	}
	// What was on the stream is in the list, each event once, with the same bytes.
	var stored []object
	for page := ""; ; {
		got := s.must(t, "GET", "/sessions/"+id+"/events?limit=5"+page, "", key...)
		stored = append(stored, got.list()...)
		if got.text("next_page") == "" {
			break
		}
		page = "&page=" + got.text("next_page")
	}
	events = events[1:] // the list has the message once, as it was last
	events[0], events[1] = events[1], events[0]
	if a, b := fmt.Sprint(stored), fmt.Sprint(events); a != b {
		t.Errorf("the list has\n%s\nthe stream had\n%s", a, b)
	}
	// The file that the agent has left.
	files := s.must(t, "GET", "/files?scope_id="+id, "", key...).list()
	if len(files) != 1 || files[0].text("filename") != "number.txt" || files[0].text("scope", "id") != id {
		t.Fatalf("the files are %v", files)
	}
	if code, text := s.Call(t, "GET", base+"/files/"+files[0].text("id")+"/content", "", key...); code != http.StatusOK || text != "9007199254740993\n" {
		t.Errorf("the file: %d %q", code, text)
	}
	// Another user of the tenant has no session of this id.
	if code, text := s.Call(t, "GET", base+"/sessions/none", "", key...); code != http.StatusNotFound || !strings.Contains(text, `"not_found_error"`) {
		t.Errorf("no session: %d %s", code, text)
	}
	if code, text := s.Call(t, "GET", base+"/sessions/"+id, ""); code != http.StatusUnauthorized || !strings.Contains(text, `"authentication_error"`) {
		t.Errorf("without a key: %d %s", code, text)
	}
}

func TestAPersonDecides(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, c := range []struct{ answer, want string }{{`"result":"allow"`, "It says 9007199254740993"}, {`"result":"deny","deny_message":"not now"`, "not now"}} {
		id := s.begin(t, `[{"type":"agent_toolset_20260401","default_config":{"permission_policy":{"type":"always_ask"}}}]`)
		st := s.follow(t, id, "")
		s.say(t, id, "tool")
		events := st.until("session.status_idle")
		use := last(t, events, "agent.tool_use")
		ids, _ := last(t, events, "session.status_idle")["stop_reason"].(map[string]any)["event_ids"].([]any)
		if use.text("evaluated_permission") != "ask" || len(ids) != 1 || ids[0] != use.text("id") {
			t.Fatalf("it waits with %v and %v", use, ids)
		}
		if got := s.must(t, "GET", "/sessions/"+id, "").text("status"); got != "idle" {
			t.Errorf("the session is %s while it waits", got)
		}
		answer := fmt.Sprintf(`{"events":[{"type":"user.tool_confirmation","tool_use_id":%q,%s}]}`, use.text("id"), c.answer)
		for range 2 { // the same answer again changes nothing
			s.must(t, "POST", "/sessions/"+id+"/events", answer)
		}
		events = st.until("session.status_idle")
		if got := said(last(t, events, "agent.message")); !strings.Contains(got, c.want) {
			t.Errorf("%s: the agent says %q", c.answer, got)
		}
		last(t, events, "user.tool_confirmation")
		other := strings.Replace(answer, c.answer, `"result":"deny"`, 1)
		if c.answer != `"result":"allow"` {
			other = strings.Replace(answer, c.answer, `"result":"allow"`, 1)
		}
		if code, text := s.Call(t, "POST", base+"/sessions/"+id+"/events", other); code != http.StatusBadRequest {
			t.Errorf("another answer: %d %s", code, text)
		}
	}
}

func TestTheClientRunsATool(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, `[{"type":"custom","name":"weather","description":"Says the weather.","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]`)
	st := s.follow(t, id, "")
	s.say(t, id, "client")
	events := st.until("session.status_idle")
	use := last(t, events, "agent.custom_tool_use")
	if use.text("name") != "weather" || use.text("input", "city") != "Berlin" {
		t.Errorf("the call is %v", use)
	}
	s.must(t, "POST", "/sessions/"+id+"/events", fmt.Sprintf(`{"events":[{"type":"user.custom_tool_result","custom_tool_use_id":%q,"content":[{"type":"text","text":"21 degrees"}]}]}`, use.text("id")))
	if got := said(last(t, st.until("session.status_idle"), "agent.message")); got != "The weather: 21 degrees" {
		t.Errorf("the agent says %q", got)
	}
}

func TestAnInterruptAndWhatFollows(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	st := s.follow(t, id, "?event_deltas[]=agent.message")
	s.say(t, id, "long")
	st.until("event_delta")
	if got := s.must(t, "GET", "/sessions/"+id, "").text("status"); got != "running" {
		t.Errorf("the session is %s", got)
	}
	if code, text := s.Call(t, "DELETE", base+"/sessions/"+id, ""); code != http.StatusBadRequest {
		t.Errorf("a running session is deleted: %d %s", code, text)
	}
	s.must(t, "POST", "/sessions/"+id+"/events", `{"events":[{"type":"user.interrupt"},{"type":"user.message","content":[{"type":"text","text":"and now?"}]}]}`)
	events := st.until("session.status_idle")
	last(t, events, "user.interrupt")
	if got := said(last(t, events, "agent.message")); got != "You said: and now?" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
}

func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	st := s.follow(t, id, "")
	s.say(t, id, "retry")
	events := st.until("session.status_idle")
	if got := last(t, events, "session.error").text("error", "type"); got != "model_overloaded_error" || said(last(t, events, "agent.message")) != "Better now." {
		t.Errorf("%q in %s", got, kinds(events))
	}
	s.say(t, id, "fail")
	events = st.until("session.status_idle")
	if got := last(t, events, "session.status_idle").text("stop_reason", "type"); got != "retries_exhausted" || last(t, events, "session.error").text("error", "type") != "model_request_failed_error" {
		t.Errorf("%q in %s", got, kinds(events))
	}
	s.must(t, "DELETE", "/sessions/"+id, "")
	if got := st.until("session.deleted"); kinds(got) != "session.status_terminated session.deleted" {
		t.Errorf("at the end comes %s", kinds(got))
	}
	if e, more := st.next(); more || st.lines.Err() != nil {
		t.Errorf("after the end: %v %v", e, st.lines.Err())
	}
}

func TestARepeatedPostHasOneEffect(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	const count = "X-Stainless-Retry-Count"
	first, second := s.say(t, id, "hello", count, "0"), s.say(t, id, "hello", count, "0")
	again, more := s.say(t, id, "hello", count, "1"), s.say(t, id, "hello", count, "2")
	ids := []string{first.list()[0].text("id"), second.list()[0].text("id"), again.list()[0].text("id"), more.list()[0].text("id")}
	if ids[0] == ids[1] || ids[1] != ids[2] || ids[2] != ids[3] {
		t.Errorf("the messages are %v", ids)
	}
	lost := s.say(t, id, "its first attempt never arrived", count, "1").list()[0].text("id")
	if lost == ids[0] || lost == ids[1] {
		t.Errorf("a repetition of nothing is %s", lost)
	}
	body := `{"name":"A","model":"scripted:agents"}`
	a, b := s.must(t, "POST", "/agents", body), s.must(t, "POST", "/agents", body)
	c := s.must(t, "POST", "/agents", body, count, "1")
	if a.text("id") == b.text("id") || b.text("id") != c.text("id") {
		t.Errorf("the agents are %s, %s and %s", a.text("id"), b.text("id"), c.text("id"))
	}
}

func TestAStreamResumesAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	st := s.follow(t, id, "")
	s.say(t, id, "tool")
	whole := st.until("agent.tool_use")
	st.close()
	rest := s.follow(t, id, "", "Last-Event-ID", st.last).until("session.status_idle")
	if got := kinds(append(whole, rest...)); got != oneTool {
		t.Errorf("the two streams have\n%s", got)
	}
}

func TestAServerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	s := spawn(t)
	id := s.begin(t, toolset)
	st := s.follow(t, id, "?event_deltas[]=agent.message")
	s.say(t, id, "slow")
	had := st.until("event_delta")
	s.Kill()
	for {
		e, ok := st.next()
		if !ok {
			break
		}
		had = append(had, e)
	}
	if st.lines.Err() == nil {
		t.Error("a stream that is cut off ends well")
	}
	s.Start(t)
	// As the documentation tells: open the stream, list the events, and drop those that are known.
	st = s.follow(t, id, "")
	known := map[string]bool{}
	events := s.must(t, "GET", "/sessions/"+id+"/events", "").list()
	for _, e := range events {
		known[e.text("id")] = true
	}
	for _, e := range had {
		if id := e.text("id"); id != "" && !known[id] {
			t.Errorf("%s was on the stream, and is not in the list", id)
		}
	}
	if events[len(events)-1].text("type") != "session.status_idle" {
		for _, e := range st.until("session.status_idle") {
			if !known[e.text("id")] {
				events = append(events, e)
			}
		}
	}
	if got := said(last(t, events, "agent.message")); got != "one two three four five six seven eight nine ten" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	messages := 0
	for _, e := range events {
		if e.text("type") == "agent.message" || e.text("type") == "user.message" {
			messages++
		}
	}
	if messages != 2 {
		t.Errorf("there are %d messages in %s", messages, kinds(events))
	}
	s.say(t, id, "go on")
	if got := said(last(t, st.until("session.status_idle"), "agent.message")); got != "You said: go on" {
		t.Errorf("then the agent says %q", got)
	}
}
