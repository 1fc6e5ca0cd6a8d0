package managed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// hosted is a self-hosted environment with a session whose turn waits for a worker.
type hosted struct {
	*server
	api, key        []string // headers with an API key, and with the environment's key
	environment     string
	session, queue  string
	agentID, secret string
}

// environmentKey makes the key of an environment.
func (s *server) environmentKey(t *testing.T, environment string, api ...string) string {
	t.Helper()
	code, text := s.Call(t, "POST", "/v1/keys", fmt.Sprintf(`{"title":"worker","scopes":["work.write:%s"]}`, strings.TrimPrefix(environment, "env_")), api...)
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusOK || made.Secret == "" {
		t.Fatalf("the key of an environment: %d %s", code, text)
	}
	return made.Secret
}

func beginHosted(t *testing.T, s *server) *hosted {
	t.Helper()
	h := &hosted{server: s}
	h.api = []string{"Authorization", "Bearer " + s.Keys["ann"]}
	h.environment = s.must(t, "POST", "/environments", `{"name":"own machines","config":{"type":"self_hosted"}}`, h.api...).text("id")
	h.secret = s.environmentKey(t, h.environment, h.api...)
	h.key = []string{"Authorization", "Bearer " + h.secret}
	h.queue = "/environments/" + h.environment + "/work"
	h.agentID = s.must(t, "POST", "/agents", `{"name":"Helper","model":"scripted:agents","tools":`+toolset+`}`, h.api...).text("id")
	h.session = h.newSession(t)
	return h
}

func (h *hosted) newSession(t *testing.T) string {
	t.Helper()
	return h.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent":%q,"environment_id":%q}`, h.agentID, h.environment), h.api...).text("id")
}

// poll returns a work item, or nil.
func (h *hosted) poll(t *testing.T, query string) object {
	t.Helper()
	code, text := h.Call(t, "GET", base+h.queue+"/poll"+query, "", append(h.key, "Anthropic-Worker-ID", "one")...)
	if code == http.StatusOK && text == "null" {
		return nil
	}
	out := object{}
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
		t.Fatalf("poll: %d %s", code, text)
	}
	return out
}

// claims polls until there is a work item, as workers do.
func (h *hosted) claims(t *testing.T, query string) object {
	t.Helper()
	for {
		if w := h.poll(t, query); w != nil {
			return w
		}
		if t.Context().Err() != nil {
			t.Fatal("there is no work")
		}
	}
}

func (h *hosted) beat(t *testing.T, work, expected string, seconds int) (int, object) {
	t.Helper()
	code, text := h.Call(t, "POST", fmt.Sprintf("%s%s/%s/heartbeat?expected_last_heartbeat=%s&desired_ttl_seconds=%d", base, h.queue, work, url.QueryEscape(expected), seconds), "", h.key...)
	out := object{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("heartbeat: %d %s", code, text)
	}
	return code, out
}

func (h *hosted) result(use, text string) string {
	return fmt.Sprintf(`{"events":[{"type":"user.tool_result","tool_use_id":%q,"content":[{"type":"text","text":%q}]}]}`, use, text)
}

func TestAWorkerRunsTheToolsOfASession(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	h := beginHosted(t, s)
	if w := h.poll(t, "?block_ms=10"); w != nil {
		t.Fatalf("before a message there is work: %v", w)
	}
	st := h.follow(t, h.session, "", h.key...)
	s.say(t, h.session, "hosted, please", h.api...)
	w := h.claims(t, "?block_ms=500&reclaim_older_than_ms=600000")
	if w.text("data", "id") != h.session || w.text("state") != "queued" || w.text("environment_id") != h.environment {
		t.Errorf("the work is %v", w)
	}
	id := w.text("id")
	if again := h.poll(t, "?reclaim_older_than_ms=600000"); again != nil {
		t.Errorf("it is given out twice: %v", again)
	}
	if got := s.must(t, "POST", h.queue+"/"+id+"/ack", "", h.key...); got.text("state") != "starting" || got.text("acknowledged_at") == "" {
		t.Errorf("acknowledged it is %v", got)
	}
	code, beat := h.beat(t, id, "NO_HEARTBEAT", 60)
	if code != http.StatusOK || beat["lease_extended"] != true || beat.text("state") != "active" || fmt.Sprint(beat["ttl_seconds"]) != "60" {
		t.Errorf("the first heartbeat: %d %v", code, beat)
	}
	if code, lost := h.beat(t, id, "NO_HEARTBEAT", 60); code != http.StatusPreconditionFailed || lost.text("error", "details", "error_code") != "heartbeat_precondition_failed" ||
		lost.text("error", "details", "current_state", "last_heartbeat") != beat.text("last_heartbeat") {
		t.Errorf("another worker's first heartbeat: %d %v", code, lost)
	}
	if code, next := h.beat(t, id, beat.text("last_heartbeat"), 60); code != http.StatusOK || next.text("last_heartbeat") == beat.text("last_heartbeat") {
		t.Errorf("the next heartbeat: %d %v", code, next)
	}
	events := st.until("session.status_idle")
	use := last(t, events, "agent.tool_use")
	if use.text("name") != "bash" || use.text("evaluated_permission") != "allow" || !strings.Contains(use.text("input", "command"), "9007199254740993") {
		t.Errorf("the call is %v", use)
	}
	if reason := last(t, events, "session.status_idle"); reason.text("stop_reason", "type") != "requires_action" || !strings.Contains(fmt.Sprint(reason["stop_reason"]), use.text("id")) {
		t.Errorf("it waits because of %v", reason)
	}
	for range 2 { // the second one, of a worker that was lost in between, counts no more
		s.must(t, "POST", "/sessions/"+h.session+"/events", h.result(use.text("id"), "9007199254740993"), h.key...)
	}
	events = st.until("session.status_idle")
	if got := said(last(t, events, "agent.message")); got != "It says 9007199254740993" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	if got := kinds(events); strings.Count(got, "user.tool_result") != 1 {
		t.Errorf("the result came as %s", got)
	}
	if code, text := s.Call(t, "POST", base+"/sessions/"+h.session+"/events", h.result(use.text("id"), "other"), h.key...); code != http.StatusBadRequest {
		t.Errorf("another result: %d %s", code, text)
	}
	if got := s.must(t, "POST", h.queue+"/"+id+"/stop", `{"force":true}`, h.key...); got.text("state") != "stopped" || got.text("stopped_at") == "" {
		t.Errorf("stopped it is %v", got)
	}
	if code, text := s.Call(t, "POST", base+h.queue+"/"+id+"/stop", `{"force":true}`, h.key...); code != http.StatusConflict {
		t.Errorf("stopped again: %d %s", code, text)
	}
	if w := h.poll(t, ""); w != nil {
		t.Errorf("after the turn there is work: %v", w)
	}
	s.say(t, h.session, "hosted, once more", h.api...)
	if next := h.claims(t, "?block_ms=500"); next.text("id") == id {
		t.Errorf("the next message has the same item %v", next)
	}
}

func TestWorkOfADeadWorkerIsGivenOutAgain(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	h := beginHosted(t, s)
	s.say(t, h.session, "hosted, please", h.api...)
	id := h.claims(t, "?block_ms=500").text("id")
	if w := h.claims(t, "?block_ms=500&reclaim_older_than_ms=1"); w.text("id") != id { // its worker has not acknowledged it
		t.Errorf("the item is %v", w)
	}
	s.must(t, "POST", h.queue+"/"+id+"/ack", "", h.key...)
	_, beat := h.beat(t, id, "NO_HEARTBEAT", 1)
	w := h.claims(t, "?block_ms=500") // the worker is silent for longer than its lease
	if w.text("id") != id || w.text("state") != "queued" || w.text("latest_heartbeat_at") != "" {
		t.Errorf("the reclaimed item is %v", w)
	}
	if code, _ := h.beat(t, id, beat.text("last_heartbeat"), 1); code != http.StatusPreconditionFailed {
		t.Errorf("the heartbeat of the worker that has lost it: %d", code)
	}
	stats := s.must(t, "GET", h.queue+"/stats", "", h.api...)
	if fmt.Sprint(stats["depth"], stats["pending"]) != "0 1" || stats.text("type") != "work_queue_stats" {
		t.Errorf("the queue counts %v", stats)
	}
	if got := s.must(t, "POST", h.queue+"/"+id, `{"metadata":{"host":"a"}}`, h.api...); got.text("metadata", "host") != "a" {
		t.Errorf("with metadata it is %v", got)
	}
	if all := s.must(t, "GET", h.queue, "", h.key...).list(); len(all) != 1 || all[0].text("id") != id || all[0].text("metadata", "host") != "a" {
		t.Errorf("the list has %v", all)
	}
}

func TestAnEnvironmentKeyServesItsEnvironmentAlone(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	h, other := beginHosted(t, s), beginHosted(t, s)
	if code, text := s.Call(t, "GET", base+h.queue+"/poll", "", append(h.key, "Anthropic-Worker-ID", "\xff")...); code != http.StatusBadRequest || !strings.Contains(text, "Anthropic-Worker-ID") {
		t.Errorf("a worker whose id is not UTF-8: %d %s", code, text)
	}
	s.say(t, h.session, "hosted, please", h.api...)
	id := h.claims(t, "?block_ms=500").text("id")
	for _, c := range []struct {
		method, path, body string
		key                []string
		code               int
		want               string
	}{
		{"GET", h.queue + "/poll", "", other.key, 403, "another environment"},
		{"POST", h.queue + "/" + id + "/ack", "", other.key, 403, "another environment"},
		{"POST", other.queue + "/" + id + "/ack", "", other.key, 404, "work item"},
		{"GET", "/sessions/" + h.session, "", other.key, 404, "session"},
		{"GET", "/sessions/" + h.session + "/events", "", other.key, 404, "session"},
		{"POST", "/sessions/" + h.session + "/events", h.result("sevt_c_x.1.0", "x"), other.key, 404, "session"},
		{"POST", "/sessions/" + h.session + "/events", `{"events":[{"type":"user.message","content":[{"type":"text","text":"x"}]}]}`, h.key, 403, "events[0].type"},
		{"DELETE", "/sessions/" + h.session, "", h.key, 403, "API key"},
		{"GET", "/agents", "", h.key, 403, "API key"},
		{"GET", "/environments", "", h.key, 403, "API key"},
		{"GET", h.queue + "/poll", "", []string{"Authorization", "Bearer fl_none"}, 401, ""},
		{"GET", h.queue + "/poll?block_ms=1000", "", h.key, 400, "block_ms"},
		{"POST", h.queue + "/" + id + "/heartbeat", "", h.key, 400, "expected_last_heartbeat"},
		{"POST", h.queue + "/work_none_1/ack", "", h.key, 404, "work_none_1"},
		{"POST", h.queue + "/" + id, `{}`, h.api, 400, "metadata"},
		{"POST", "/environments/" + h.environment, `{"config":{"type":"cloud"}}`, h.api, 400, "config.type"},
		{"GET", "/environments/env_none/work/poll", "", h.api, 404, "environments/none"},
		{"POST", "/sessions", fmt.Sprintf(`{"agent":%q,"environment_id":%q,"resources":[{"type":"file","file_id":"file_1"}]}`, h.agentID, h.environment), h.api, 400, "resources"},
	} {
		code, text := s.Call(t, c.method, base+c.path, c.body, c.key...)
		if code != c.code || !strings.Contains(text, c.want) || !strings.Contains(text, `"type":"error"`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, text)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/keys", "/v1/environments"} { // nothing but the wire knows such keys
		if code, text := s.Call(t, "GET", path, "", h.key...); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := s.Call(t, "POST", "/v1/keys", `{"scopes":["work.write:none"]}`, h.api...); code != http.StatusBadRequest || !strings.Contains(text, "none") {
		t.Errorf("a key for no environment: %d %s", code, text)
	}
}

// officialWorker starts the worker of the page. It is killed with the test.
func (h *hosted) officialWorker(t *testing.T, folder string) *exec.Cmd {
	t.Helper()
	return h.runWorker(t, folder, wiretest.Python(t), wiretest.File(t, "worker.py", wiretest.Example(t, "managed-agents.md", "python", "# A worker", h.URL)))
}

// runWorker starts a program that is a worker.
func (h *hosted) runWorker(t *testing.T, folder, program, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, script)
	cmd.Env = append(os.Environ(), "SERVER="+h.URL, "ENVIRONMENT_ID="+h.environment, "ENVIRONMENT_KEY="+h.secret, "WORKDIR="+folder)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}

// TestAnOfficialWorkerIsKilledInMidCall shows that the next worker finds the call open, and that one result counts.
func TestAnOfficialWorkerIsKilledInMidCall(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts official workers in two languages, and waits for a lease")
	s := serveUsers(t)
	for language, start := range map[string]func(t *testing.T, h *hosted, folder string) *exec.Cmd{
		"Python": func(t *testing.T, h *hosted, folder string) *exec.Cmd { return h.officialWorker(t, folder) },
		"TypeScript": func(t *testing.T, h *hosted, folder string) *exec.Cmd {
			return h.runWorker(t, folder, wiretest.Node(t), wiretest.Script(t, "worker.mjs"))
		},
	} {
		t.Run(language, func(t *testing.T) {
			h, folder := beginHosted(t, s), t.TempDir()
			st := h.follow(t, h.session, "", h.api...)
			worker := start(t, h, folder)
			s.say(t, h.session, "mid-call, please", h.api...)
			(&machine{data: folder}).file(t, "runs.txt")
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "go.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			start(t, h, folder)
			events := turnEnds(t, st)
			if got := strings.TrimSpace(said(last(t, events, "agent.message"))); got != "It says finished" {
				t.Errorf("the agent says %q", got)
			}
			if got := kinds(events); strings.Count(got, "user.tool_result") != 1 {
				t.Errorf("the result came as %s", got)
			}
		})
	}
}

// TestTheOfficialWorker runs the calls of a session. Another one goes on after it was killed, and makes no call again that was answered.
func TestTheOfficialWorker(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts an official worker")
	s := serveUsers(t)
	h, folder := beginHosted(t, s), t.TempDir()
	st := h.follow(t, h.session, "", h.api...)
	for turn := 1; turn <= 2; turn++ {
		worker := h.officialWorker(t, folder)
		s.say(t, h.session, "hosted, please", h.api...)
		for events := st.until("session.status_idle"); ; events = st.until("session.status_idle") {
			if last(t, events, "session.status_idle").text("stop_reason", "type") == "requires_action" {
				continue
			}
			if got := said(last(t, events, "agent.message")); got != "It says 9007199254740993" {
				t.Errorf("the agent says %q in %s", got, kinds(events))
			}
			break
		}
		if err := worker.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		runs, err := os.ReadFile(filepath.Join(folder, "runs.txt"))
		if want := strings.Repeat("run\n", turn); err != nil || string(runs) != want {
			t.Errorf("after turn %d the calls have written %q, %v", turn, runs, err)
		}
	}
}

// TestAStreamTellsWhatTheLogDoesNotHave: new titles and metadata, and that a session was archived. It tells so at once, and
// not at the third heartbeat.
func TestAStreamTellsWhatTheLogDoesNotHave(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	st := s.follow(t, id, "")
	s.must(t, "POST", "/sessions/"+id, `{"title":"New","metadata":{"a":"b"}}`)
	if e := last(t, st.until("session.updated"), "session.updated"); e.text("title") != "New" || e.text("metadata", "a") != "b" || e.text("id") == "" {
		t.Errorf("the change comes as %v", e)
	}
	s.must(t, "POST", "/sessions/"+id+"/archive", "")
	st.until("session.status_terminated")
	if st.beats > 2 {
		t.Errorf("the changes came after %d heartbeats", st.beats)
	}
	if all := s.must(t, "GET", "/sessions/"+id+"/events", "").list(); len(all) == 0 || all[len(all)-1].text("type") != "session.status_terminated" {
		t.Errorf("the list has %s", kinds(all))
	}
}
