package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestACommandRunsOnAsAnOperation(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		begun := s.turn(t, session, "background")
		last(t, begun, "COMPLETE")
		i := slices.IndexFunc(begun, func(f frame) bool { return f.event == "operation.started" })
		if i < 0 {
			t.Fatalf("there is no operation in %s", events(begun))
		}
		operation := begun[i].field("operationStarted", "operation")
		looked := s.turn(t, session, operation)
		last(t, looked, "COMPLETE")
		if got := results(looked); len(got) != 1 || !strings.Contains(got[0], "begun\nended") {
			t.Errorf("the agent saw %q", got)
		}
		if !slices.ContainsFunc(looked, func(f frame) bool { return f.field("operationFinished", "state") == "SUCCEEDED" }) {
			t.Errorf("no event says that the operation ended: %s", events(looked))
		}
		r := s.call(t, http.MethodGet, "/v1/"+operation, "")
		if !strings.Contains(r.body, "OPERATION_STATE_SUCCEEDED") || !strings.Contains(r.body, `"exitCode":0`) {
			t.Errorf("the operation is %d %s", r.code, r.body)
		}
		if r := s.call(t, http.MethodGet, "/v1/operations?session="+session, ""); !strings.Contains(r.body, operation) {
			t.Errorf("the list of operations is %d %s", r.code, r.body)
		}
		s.checkFork(t, session)
	})
}

// checkFork forks a session with a file, and reads the file there.
func (s *system) checkFork(t *testing.T, session string) {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/"+session+":fork", `{"title":"a fork"}`)
	var fork struct{ Name, ForkedFrom string }
	if err := json.Unmarshal([]byte(r.body), &fork); err != nil || fork.ForkedFrom != session {
		t.Fatalf("fork: %d %s", r.code, r.body)
	}
	read := s.turn(t, fork.Name, "read made")
	last(t, read, "COMPLETE")
	if got := results(read); len(got) != 1 || !strings.Contains(got[0], "made") || !strings.HasPrefix(got[0], "Read OK") {
		t.Errorf("in the fork the file reads %q", got)
	}
	mine := s.call(t, http.MethodGet, "/v1/"+session+"/messages?page_size=1000", "")
	theirs := s.call(t, http.MethodGet, "/v1/"+fork.Name+"/messages?page_size=1000", "")
	if n, m := strings.Count(mine.body, `"role"`), strings.Count(theirs.body, `"role"`); m != n+4 {
		t.Errorf("the session has %d messages and the fork, with a turn more, %d", n, m)
	}
}

func TestAMessageSteersTheActiveTurnOrTakesItsPlace(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		for mode, want := range map[string]string{"STEER": "TURN_STATE_COMPLETE", "ROLLBACK": "TURN_STATE_INTERRUPTED"} {
			session := s.session(t, "coder")
			arrived := ""
			first := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"nap"}`, func(f frame) bool {
				if f.event == "tool_call.decision" {
					r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"hello","onActive":"ON_ACTIVE_`+mode+`"}`)
					var turn struct{ Name string }
					if err := json.Unmarshal([]byte(r.body), &turn); err != nil || r.code != http.StatusOK {
						t.Errorf("%s: %d %s", mode, r.code, r.body)
					}
					arrived = turn.Name
				}
				return true
			})
			if got := first[len(first)-1].field("turnFinished", "state"); got != want {
				t.Errorf("after %s the first turn is %s", mode, got)
			}
			turn := s.waitFor(t, arrived)
			if turn.State != "TURN_STATE_COMPLETE" || (turn.SteeredInto != "") != (mode == "STEER") {
				t.Errorf("after %s the second turn is %+v", mode, turn)
			}
			log := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool {
				return f.event != "turn.finished" || f.field("turn") != arrived
			})
			for name, in := range map[string]string{"turn.steered": "STEER", "session.rewound": "ROLLBACK"} {
				if slices.ContainsFunc(log, func(f frame) bool { return f.event == name }) != (mode == in) {
					t.Errorf("after %s the log is %s", mode, events(log))
				}
			}
		}
	})
}

type turnAnswer struct{ State, SteeredInto string }

// waitFor asks for a turn until it has ended.
func (s *system) waitFor(t *testing.T, turn string) (answer turnAnswer) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); pause(t.Context()) {
		r := s.call(t, http.MethodGet, "/v1/"+turn, "")
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil {
			t.Fatalf("%s: %d %s", turn, r.code, r.body)
		}
		if answer.State != "TURN_STATE_QUEUED" && answer.State != "TURN_STATE_RUNNING" {
			return answer
		}
	}
	t.Fatalf("%s is still %s", turn, answer.State)
	return answer
}

func TestTheViewIsShortenedOnRequestAndTheConversationKept(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		s.turn(t, session, "work")
		before := s.call(t, http.MethodGet, "/v1/"+session+"/messages?page_size=1000", "")
		if r := s.call(t, http.MethodPost, "/v1/"+session+":compact", `{"instructions":"keep the paths"}`); r.code != http.StatusOK {
			t.Fatalf("compact: %d %s", r.code, r.body)
		}
		s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "session.compacted" })
		after := s.call(t, http.MethodGet, "/v1/"+session+"/messages?page_size=1000", "")
		if n, m := strings.Count(before.body, `"role"`), strings.Count(after.body, `"role"`); m != n+1 {
			t.Errorf("there were %d messages and are %d, want one more: the summary", n, m)
		}
		last(t, s.turn(t, session, "hello"), "COMPLETE")
	})
}
