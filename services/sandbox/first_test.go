package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// A crash of the machine may forget a command whose caller vouched for it: nobody starts it again.
func TestACommandThatTheMachineForgotIsLost(t *testing.T) {
	atLevel(t, func(t *testing.T, level string) {
		cfg := configuration(t, level)
		c := start(t, cfg)
		c.ensure(t.Context(), t)
		run := func(id string, first bool) result {
			t.Helper()
			r, err := c.exec(t.Context(), "echo "+id+" >> ran", func(s *sandboxv1.ExecStart) { s.Call, s.FirstAttempt = c.named(id), first })
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		run("forgotten", true)
		if r := run("forgotten", false); !r.attached || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
			t.Errorf("before: %v", r.ExecExited)
		}
		c.stop()
		forget(t, filepath.Join(cfg.Data, "default", "one"))
		if err := errors.Join(os.Remove(filepath.Join(cfg.Data, ".starts-0")), os.Remove(filepath.Join(cfg.Data, ".starts-1"))); err != nil {
			t.Fatal(err)
		}
		c = start(t, cfg)
		if r := run("forgotten", false); !r.attached || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_LOST || r.GetMessage() == "" {
			t.Errorf("afterwards: %v", r.ExecExited)
		}
		if r := run("new", true); r.attached || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
			t.Errorf("a new one: %v", r.ExecExited)
		}
		if b, err := c.read(t, "ran"); err != nil || b != "forgotten\nnew\n" {
			t.Errorf("ran: %q, %v", b, err)
		}
	})
}

// forget does to a session what another start of the machine does to what was not synced.
func forget(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "workspace.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatal(err)
	}
	if meta["unsynced"] == nil {
		t.Error("the workspace does not remember that starts are not synced")
	}
	meta["unsynced"] = "another"
	if raw, err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	execs := filepath.Join(dir, "execs")
	if err := errors.Join(os.WriteFile(path, raw, 0o600), os.RemoveAll(execs), os.Mkdir(execs, 0o700)); err != nil {
		t.Fatal(err)
	}
}
