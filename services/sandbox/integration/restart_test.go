package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestARestartKeepsResultsAndReportsLostCommands(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	var finished, lost, early = "finished", "lost", "early"
	t.Run("first", func(t *testing.T) {
		c := start(t, cfg)
		c.epoch = 5
		c.ensure(t.Context(), t)
		if _, err := c.exec(t.Context(), "echo kept", func(s *sandboxv1.ExecStart) { s.Call = c.named(finished) }); err != nil {
			t.Fatal(err)
		}
		c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.named(lost), Argv: []string{"sleep", "100"}})
		if _, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: c.named(early)}); err != nil {
			t.Fatal(err)
		}
		c.stop()
	})
	// What a crash leaves: a record without an end.
	record := filepath.Join(cfg.Data, "default", "one", "execs", lost, "record.json")
	raw, err := os.ReadFile(record)
	if err != nil || !strings.Contains(string(raw), `"lost"`) {
		t.Fatalf("%s, %v", raw, err)
	}
	c := start(t, cfg)
	c.epoch = 5
	attach := func(id string) (result, error) {
		s, err := c.execs.Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send(t, s, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{Call: c.named(id)}}})
		return follow(s)
	}
	if r, err := attach(finished); err != nil || r.out != "kept\n" {
		t.Errorf("%q, %v", r.out, err)
	}
	if r, err := attach(lost); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_LOST {
		t.Errorf("%v, %v", r.ExecExited, err)
	}
	_, err = c.exec(t.Context(), "echo no", func(s *sandboxv1.ExecStart) { s.Call = c.named(early) })
	wantReason(t, err, "CALL_CANCELLED")
	c.epoch = 4
	_, err = c.exec(t.Context(), "echo no", nil)
	wantReason(t, err, "STALE_EPOCH")
}

func TestACrashedServiceReportsItsCommandsAsLost(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	record := filepath.Join(cfg.Data, "default", "one", "execs", "gone", "record.json")
	t.Run("first", func(t *testing.T) {
		c := start(t, cfg)
		c.ensure(t.Context(), t)
		if err := os.Mkdir(filepath.Dir(record), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(record, []byte(`{"call_id":"gone","digest":"AAAA","argv":["sleep","9"],"started":"2026-01-01T00:00:00Z"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	c := start(t, cfg)
	r, err := c.execs.ListExecs(t.Context(), &sandboxv1.ListExecsRequest{Session: c.session})
	if err != nil || len(r.GetExecs()) != 1 || r.GetExecs()[0].GetExited().GetReason() != sandboxv1.ExitReason_EXIT_REASON_LOST {
		t.Errorf("%v, %v", r, err)
	}
}

// TestATakeoverIsRemembered: what the old holder started goes on, and it starts
// nothing else, also after a restart of the node.
func TestATakeoverIsRemembered(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	t.Run("first", func(t *testing.T) {
		c := start(t, cfg)
		fence := func() error {
			_, err := c.workspaces.FenceWorkspace(t.Context(), &sandboxv1.FenceWorkspaceRequest{Call: c.call()})
			return err
		}
		wantReason(t, fence(), "WORKSPACE_NOT_FOUND")
		c.ensure(t.Context(), t)
		c.epoch = 5
		for range 2 {
			if err := fence(); err != nil {
				t.Fatal(err)
			}
		}
		c.epoch = 4
		wantReason(t, fence(), "STALE_EPOCH")
		_, err := c.exec(t.Context(), "touch stale", nil)
		wantReason(t, err, "STALE_EPOCH")
		c.epoch = 5
		_, err = c.workspaces.FenceWorkspace(t.Context(), &sandboxv1.FenceWorkspaceRequest{Call: &commonv1.CallRef{Session: c.session, Epoch: 6, CallId: "other", Node: "another"}})
		wantReason(t, err, "WRONG_NODE")
	})
	c := start(t, cfg)
	c.epoch = 4
	_, err := c.exec(t.Context(), "touch stale", nil)
	wantReason(t, err, "STALE_EPOCH")
	c.epoch = 5
	if r, err := c.exec(t.Context(), "ls stale || echo none", nil); err != nil || r.out != "none\n" {
		t.Errorf("%q, %v", r.out, err)
	}
}

func TestAStaleCallerChangesNothing(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.epoch = 7
	c.bash(t, "true")
	c.epoch = 6
	_, err := c.exec(t.Context(), "touch stale", nil)
	wantReason(t, err, "STALE_EPOCH")
	_, err = c.write(t, "stale", "x", nil)
	wantReason(t, err, "STALE_EPOCH")
	_, err = c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call()})
	wantReason(t, err, "STALE_EPOCH")
	_, err = c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: c.call()})
	wantReason(t, err, "STALE_EPOCH")
	c.epoch = 7
	_, err = c.exec(t.Context(), "true", func(s *sandboxv1.ExecStart) { s.Call.WorkspaceGeneration = 2 })
	wantReason(t, err, "STALE_GENERATION")
	_, err = c.read(t, "stale")
	wantReason(t, err, "FILE_NOT_FOUND")
}
