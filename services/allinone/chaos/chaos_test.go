package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/wires"
)

// TestChaos is the short form of `make chaos`.
func TestChaos(t *testing.T) {
	dir, err := os.MkdirTemp("", "fairlead-chaos-") // t.TempDir is closed to the users of sandboxes
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	rec, rep, err := run(t.Context(), options{
		dir: dir, seed: 1, kills: 12, sessions: 8, interval: 700 * time.Millisecond, lease: 2 * time.Second,
		settle: 2 * time.Minute, duration: 20 * time.Second, kinds: time.Minute, log: t.Logf,
	})
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
	for _, v := range rep.Violations {
		t.Error(v)
	}
	for kind, n := range map[string]int{
		"turn that ended COMPLETE as scripted": rep.Stats.Complete, "effect of a call": rep.Stats.Effects, "subagent": rep.Stats.Subagents,
	} {
		if rec != nil && n == 0 {
			t.Errorf("the run had no %s: %+v", kind, rep.Stats)
		}
	}
	if rec != nil && len(rep.Stats.Wires) != len(wires.All) {
		t.Errorf("not every protocol was followed: %+v", rep.Stats.Wires)
	}
	if rec != nil {
		summarize(t.Output(), rec, rep)
	}
	if !t.Failed() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		return
	}
	if rec != nil {
		_ = rec.Save(dir + "/recording.json")
	}
	t.Logf("data, logs and recordings are kept in %s", dir)
}
