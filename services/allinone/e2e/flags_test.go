package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// switches is a file of flags.
type switches struct{ file string }

// set writes the file, and waits until a server has read it.
func (f switches) set(t *testing.T, s *system, runtime, keep string) {
	t.Helper()
	f.write(t, fmt.Sprintf(`{"flags": {
		"runtime": {"state": "ENABLED", "variants": {"native": "native", "cli": "claude-code"}, "defaultVariant": %q},
		"claude-code-keep-alive": {"state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": %q}}}`, runtime, keep))
	if s == nil {
		return
	}
	last := s.flags(t).ReadTime
	until(t, "the file is read", func() bool { return s.flags(t).ReadTime != last })
}

// write replaces the file in one move, as operators should.
func (f switches) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.file+".new", f.file); err != nil {
		t.Fatal(err)
	}
}

type flagState struct {
	Names             []string
	ReadTime, Problem string
}

func (s *system) flags(t *testing.T) flagState {
	t.Helper()
	var answer struct{ Flags flagState }
	if r := s.call(t, http.MethodGet, "/v1/capabilities", ""); json.Unmarshal([]byte(r.body), &answer) != nil || len(answer.Flags.Names) != 2 {
		t.Fatalf("the capabilities are %s", r.body)
	}
	return answer.Flags
}

// TestFlagsSwitchTurnsOfALiveServer changes the file of flags between turns, and in the middle of one.
func TestFlagsSwitchTurnsOfALiveServer(t *testing.T) {
	t.Parallel()
	f := switches{filepath.Join(t.TempDir(), "flags.json")}
	f.set(t, nil, "native", "on")
	o := withRuntimes(t, options{})
	o.env = append(o.env, "FAIRLEAD_SESSION_FLAGS_FILE="+f.file)
	s := start(t, o)
	session := s.session(t, "full-native")
	clis := func() int { return len(processesWith(cliName(session))) }
	turn := func(text, runtime, variants string, see func(frame)) {
		t.Helper()
		frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", fmt.Sprintf(`{"text":%q}`, text), func(f frame) bool {
			if see != nil {
				see(f)
			}
			return true
		})
		last(t, frames, "COMPLETE")
		for _, f := range frames {
			var e struct {
				TurnStarted struct {
					Runtime string
					Flags   []struct{ Variant string }
				}
			}
			if f.event != "turn.started" {
				continue
			}
			if err := json.Unmarshal([]byte(f.data), &e); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range e.TurnStarted.Flags {
				got = append(got, x.Variant)
			}
			if e.TurnStarted.Runtime != runtime || strings.Join(got, " ") != variants {
				t.Errorf("%s began with %+v", text, e.TurnStarted)
			}
		}
	}
	turn("hello", "native", "native", nil)
	if n := clis(); n != 0 {
		t.Errorf("%d CLIs run for a native turn", n)
	}
	f.set(t, s, "cli", "on")
	turn("hello", "claude-code", "cli on", nil)
	if n := clis(); n != 1 {
		t.Errorf("%d CLIs wait for the next turn", n)
	}
	f.set(t, s, "cli", "off")
	turn("hello", "claude-code", "cli off", nil)
	until(t, "no CLI is left", func() bool { return clis() == 0 })

	f.set(t, s, "native", "on")
	turn("slow", "native", "native", func(e frame) {
		if e.event == "tool_call.decision" {
			f.set(t, s, "cli", "on")
			s.goOn(t, session)
		}
	})
	if n := clis(); n != 0 {
		t.Errorf("%d CLIs run: the turn has changed its runtime in the middle", n)
	}
	f.write(t, `{"flags": {"runtime": {"state": "ENABLED", "variants": {"x": "gemini"}}}}`)
	until(t, "the faulty file is seen", func() bool {
		return strings.Contains(s.flags(t).Problem, "flags.runtime.variants.x: gemini is neither agent nor one of the runtimes native and claude-code")
	})
	turn("hello", "claude-code", "cli on", nil)
}
