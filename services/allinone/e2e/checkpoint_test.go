package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// point is a checkpoint, as REST shows it.
type point struct {
	Name, Description, Head string
	Automatic               bool
	Step                    int
}

// points lists a session's checkpoints, the last one first.
func (s *system) points(t *testing.T, session string) []point {
	t.Helper()
	r := s.call(t, http.MethodGet, "/v1/"+session+"/checkpoints", "")
	var answer struct{ Checkpoints []point }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK {
		t.Fatalf("list checkpoints: %d %s", r.code, r.body)
	}
	return answer.Checkpoints
}

func (s *system) rewind(t *testing.T, session, body string) {
	t.Helper()
	if r := s.call(t, http.MethodPost, "/v1/"+session+":rewind", body); r.code != http.StatusOK || strings.Contains(r.body, `"rewinding"`) {
		t.Fatalf("rewind: %d %s", r.code, r.body)
	}
}

// messages counts the conversation's messages.
func (s *system) messages(t *testing.T, session string) int {
	t.Helper()
	r := s.call(t, http.MethodGet, "/v1/"+session+"/messages?pageSize=100", "")
	var answer struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK {
		t.Fatalf("list messages: %d %s", r.code, r.body)
	}
	return len(answer.Messages)
}

func TestASessionIsRewoundWithItsFiles(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		last(t, s.turn(t, session, "change twice"), "COMPLETE")
		all := s.points(t, session)
		if len(all) != 2 || all[0].Step != 3 || all[1].Step != 1 || !all[0].Automatic {
			t.Fatalf("checkpoints %v", all)
		}
		if r := s.call(t, http.MethodPost, "/v1/"+session+"/checkpoints", `{"description":"all of it"}`); r.code != http.StatusOK || !strings.Contains(r.body, "all of it") {
			t.Fatalf("make a checkpoint: %d %s", r.code, r.body)
		}
		files := func(want string) {
			t.Helper()
			if got := last(t, s.turn(t, session, "what is there"), "COMPLETE").field("turnFinished", "finalText"); strings.Join(strings.Fields(got), " ") != want {
				t.Errorf("the files are %q, want %q", got, want)
			}
		}
		files("a.txt artifacts d link mnt repos uploads workflows two")
		s.rewind(t, session, `{"checkpoint":"`+all[0].Name+`"}`)
		if n := s.messages(t, session); n != 5 {
			t.Errorf("before the third step there are %d messages", n)
		}
		s.kill()
		s = s.restart(t)
		files("a.txt artifacts mnt repos uploads workflows one")
		if left := s.points(t, session); len(left) != 3 || left[1].Name != all[0].Name { // the look at the files was a command, too
			t.Errorf("left are %v", left)
		}
		s.rewind(t, session, `{"checkpoint":"`+all[1].Name+`"}`)
		if n := s.messages(t, session); n != 1 {
			t.Errorf("before the first step there are %d messages", n)
		}
		if r := s.call(t, http.MethodPost, "/v1/"+session+":rewind", `{"latestButOne":true}`); r.code != http.StatusNotFound || !strings.Contains(r.body, "CHECKPOINT_NOT_FOUND") {
			t.Errorf("to the last but one of one: %d %s", r.code, r.body)
		}
		if got := last(t, s.turn(t, session, "what is there"), "COMPLETE").field("turnFinished", "finalText"); strings.Contains(got, "one") || strings.Contains(got, "two") {
			t.Errorf("the files are %q", got)
		}
	})
}
