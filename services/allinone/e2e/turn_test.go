package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestACoderTurnRunsItsToolsInTheSandbox(t *testing.T) {
	t.Parallel()
	everyShape(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		frames := s.turn(t, session, "work")
		if got := last(t, frames, "COMPLETE").field("turnFinished", "finalText"); got != "It adds. Done." {
			t.Errorf("the final text is %q", got)
		}
		checkIDs(t, frames)
		checkResults(t, results(frames))
		for _, want := range []string{"turn.queued", "turn.started", "step.started", "thinking.delta", "text.delta", "tool_call.started",
			"tool_call.arguments", "tool_call.decision", "tool_call.output_delta", "todo.updated", "step.finished"} {
			if !slices.ContainsFunc(frames, func(f frame) bool { return f.event == want }) {
				t.Errorf("there is no %s in %s", want, events(frames))
			}
		}
		s.checkResume(t, session, frames)
	})
}

// checkIDs checks that ids increase.
func checkIDs(t *testing.T, frames []frame) {
	t.Helper()
	before := int64(0)
	for _, f := range frames {
		id, err := strconv.ParseInt(f.id, 10, 64)
		if err != nil || id <= before {
			t.Errorf("the id %q of %s follows %d", f.id, f.event, before)
		}
		before = id
		if f.field("seq") != f.id {
			t.Errorf("the id is %s, the event's seq %s", f.id, f.field("seq"))
		}
	}
}

func checkResults(t *testing.T, got []string) {
	t.Helper()
	want := []string{"TodoWrite OK", "Write OK", "Bash OK -1", "Edit OK", "Bash ", "Read OK", "Grep OK", "Glob OK", "LS OK"}
	if len(got) != len(want) {
		t.Fatalf("there are %d results: %q", len(got), got)
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
			t.Errorf("no result begins with %q: %q", w, got)
		}
	}
	second := got[4]
	for _, part := range []string{"5", "oops", "3"} {
		if !strings.Contains(second, part) {
			t.Errorf("the second run's result has no %q: %q", part, second)
		}
	}
	if strings.Contains(second, "\n0\n") {
		t.Errorf("the command ran as root inside: %q", second)
	}
	i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, "Read OK") })
	if i < 0 || !strings.Contains(got[i], "1\techo $(($1 + $2))") {
		t.Errorf("Read does not show the edited file with line numbers: %q", got)
	}
}

// checkResume checks that every way to continue brings exactly the rest.
func (s *system) checkResume(t *testing.T, session string, frames []frame) {
	t.Helper()
	end := func(f frame) bool { return f.event != "turn.finished" }
	all := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", end)
	if all[0].event != "session.created" || all[0].id != "1" {
		t.Errorf("the log begins with %s %s", all[0].id, all[0].event)
	}
	middle := len(all) / 2
	for name, got := range map[string][]frame{
		"Last-Event-ID":                s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", end, "Last-Event-ID", all[middle].id),
		"after_seq":                    s.stream(t, http.MethodGet, "/v1/"+session+"/events?after_seq="+all[middle].id, "", end),
		"Last-Event-ID over after_seq": s.stream(t, http.MethodGet, "/v1/"+session+"/events?after_seq=1", "", end, "Last-Event-ID", all[middle].id),
		"StreamEvents by its own path": s.stream(t, http.MethodGet, "/v1/"+session+"/events:stream?after_seq="+all[middle].id, "", end),
	} {
		if !slices.Equal(got, all[middle+1:]) {
			t.Errorf("%s brings\n%s, want\n%s", name, events(got), events(all[middle+1:]))
		}
	}
	// The turn's own stream is the log without the session's own events.
	if want := all[1:]; !slices.Equal(ranges(frames), ranges(want)) && events(frames) != events(want) {
		t.Errorf("the turn's stream was\n%s, the log has\n%s", events(frames), events(want))
	}
}

func ranges(frames []frame) []string {
	var all []string
	for _, f := range frames {
		all = append(all, f.field("firstSeq")+"-"+f.id+" "+f.event)
	}
	return all
}

func TestRepeatingATurnWithItsKeyReAttachesAndNeverRunsAgain(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		path := "/v1/" + session + "/turns:stream"
		first := s.stream(t, http.MethodPost, path, `{"text":"hello"}`, nil, "Idempotency-Key", "k1")
		again := s.stream(t, http.MethodPost, path, `{"text":"hello"}`, nil, "Idempotency-Key", "k1", "Last-Event-ID", first[2].id)
		if !slices.Equal(again, first[3:]) {
			t.Errorf("the second time brought %s, want %s", events(again), events(first[3:]))
		}
		r := s.call(t, http.MethodPost, path, `{"text":"other"}`, "Idempotency-Key", "k1")
		if r.code != http.StatusConflict || !strings.Contains(r.body, "REQUEST_ID_REUSED") {
			t.Errorf("another body under the same key: %d %s", r.code, r.body)
		}
		r = s.call(t, http.MethodGet, "/v1/"+session+"/turns", "")
		if n := strings.Count(r.body, `"name"`); n != 1 {
			t.Errorf("there are %d turns: %s", n, r.body)
		}
		r = s.call(t, http.MethodPost, "/v1/sessions", `{}`)
		key := r.header.Get("Idempotency-Key")
		if key == "" {
			t.Errorf("the server made no key: %v", r.header)
		}
		if again := s.call(t, http.MethodPost, "/v1/sessions", `{}`, "Idempotency-Key", key); again.body != r.body {
			t.Errorf("repeating with the server's key brought %s, want %s", again.body, r.body)
		}
	})
}

func TestInterruptsStopTheModelAndTheCommand(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		for text, at := range map[string]string{"count": "text.delta", "sleep": "tool_call.decision"} {
			session := s.session(t, "coder")
			frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"`+text+`"}`, func(f frame) bool {
				if f.event == at {
					if r := s.call(t, http.MethodPost, "/v1/"+session+":interrupt", ""); r.code != http.StatusOK {
						t.Errorf("interrupt: %d %s", r.code, r.body)
					}
				}
				return true
			})
			last(t, frames, "INTERRUPTED")
			last(t, s.turn(t, session, "hello"), "COMPLETE")
		}
	})
}

func TestARollbackBringsBackTheFiles(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		last(t, s.turn(t, session, "plant"), "COMPLETE")
		var after []frame
		undone := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"spoil"}`, func(f frame) bool {
			if f.event == "tool_call.output_delta" && after == nil {
				after = s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"look after the tree","on_active":"ON_ACTIVE_ROLLBACK"}`, nil)
			}
			return true
		})
		last(t, undone, "INTERRUPTED")
		text := last(t, after, "COMPLETE").field("turnFinished", "finalText")
		if !strings.Contains(text, "planted\n640\nempty\ntree\nartifacts\nkept\n") || strings.Contains(text, "other") {
			t.Errorf("after the rollback there is %q", text)
		}
		all := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.id != after[len(after)-1].id })
		if !slices.ContainsFunc(all, func(f frame) bool { return f.field("warning", "reason") == "FILES_RESTORED" }) {
			t.Errorf("nothing says that the files were brought back: %s", events(all))
		}
	})
}

func TestAConversationContinuesAfterEverythingWasKilled(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		last(t, s.turn(t, session, "work"), "COMPLETE")
		before := s.call(t, http.MethodGet, "/v1/"+session+"/messages", "").body
		s.kill()
		s = s.restart(t)
		if after := s.call(t, http.MethodGet, "/v1/"+session+"/messages", "").body; after != before || !strings.Contains(after, "toolResult") {
			t.Errorf("the conversation was\n%s\nand is\n%s", before, after)
		}
		last(t, s.turn(t, session, "hello again"), "COMPLETE")
		list := s.call(t, http.MethodGet, "/v1/sessions", "").body
		if !strings.Contains(list, session) {
			t.Errorf("the session is not listed: %s", list)
		}
	})
}

func TestAKillInTheMiddleOfATurnLosesNothing(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.env = []string{"FAIRLEAD_SESSION_LEASE_TTL=2s"} // after a kill the lease has to end first
		if o.database == "" {
			o.env = []string{"FAIRLEAD_SESSION_LEASE_TTL=1h"} // but not where only one process uses the database
		}
		s := start(t, o)
		session := s.session(t, "coder")
		r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"work"}`)
		if r.code != http.StatusOK {
			t.Fatalf("create a turn: %d %s", r.code, r.body)
		}
		seen := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "tool_call.started" })
		s.kill()
		s = s.restart(t)
		rest := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" }, "Last-Event-ID", seen[len(seen)-1].id)
		if got := last(t, rest, "COMPLETE").field("turnFinished", "finalText"); got != "It adds. Done." {
			t.Errorf("the final text is %q", got)
		}
		next := int64(1)
		for _, f := range append(slices.Clone(seen), rest...) {
			if f.field("firstSeq") != strconv.FormatInt(next, 10) {
				t.Fatalf("%s begins at %s, want %d", f.event, f.field("firstSeq"), next)
			}
			id, _ := strconv.ParseInt(f.id, 10, 64)
			next = id + 1
		}
	})
}

func TestTheAssistantGreetsAndCannotChangeTheWorkspace(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "assistant")
		if r := s.call(t, http.MethodGet, "/v1/"+session+"/messages", ""); !strings.Contains(r.body, "Hello!") {
			t.Errorf("it does not greet: %s", r.body)
		}
		frames := s.turn(t, session, "look")
		last(t, frames, "COMPLETE")
		got := results(frames)
		if len(got) != 2 || !strings.HasPrefix(got[0], "LS OK") || strings.HasPrefix(got[1], "Write OK") {
			t.Errorf("the results are %q", got)
		}
	})
}

func TestBadCallsOfTheModelAreToolErrors(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		frames := s.turn(t, session, "bad tools")
		if got := last(t, frames, "COMPLETE").field("turnFinished", "finalText"); got != "I survived." {
			t.Errorf("the final text is %q", got)
		}
		got := results(frames)
		if len(got) != 5 {
			t.Fatalf("there are %d results: %q", len(got), got)
		}
		for _, g := range got {
			if !strings.HasPrefix(g, "Bash") && !strings.Contains(g, " ERROR ") {
				t.Errorf("not an error: %q", g)
			}
			if len(g) > 100_000 {
				t.Errorf("a result has %d bytes", len(g))
			}
		}
		escape := s.turn(t, s.session(t, "coder"), "escape")
		last(t, escape, "COMPLETE")
		for _, g := range results(escape) {
			if strings.Contains(g, "root:") || strings.HasPrefix(g, "Write OK") || strings.Contains(g, "Read OK") {
				t.Errorf("it got out: %q", g)
			}
		}
	})
}

func TestAnApprovalIsAskedForAndGivenOverREST(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "asker")
		frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"ask"}`, func(f frame) bool {
			if f.event == "approval.requested" {
				body := `{"callId":"` + f.field("approvalRequested", "callId") + `","digest":"` + f.field("approvalRequested", "digest") + `","approved":true}`
				if r := s.call(t, http.MethodPost, "/v1/"+session+"/approvals:resolve", body); r.code != http.StatusOK {
					t.Errorf("resolve: %d %s", r.code, r.body)
				}
			}
			return true
		})
		last(t, frames, "COMPLETE")
		if got := results(frames); len(got) != 1 || !strings.HasPrefix(got[0], "Write OK") {
			t.Errorf("the results are %q", got)
		}
	})
}
