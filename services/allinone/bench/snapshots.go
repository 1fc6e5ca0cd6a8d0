package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// measureSnapshots has the sandbox service's own program measure its store of
// snapshots.
func measureSnapshots(ctx context.Context, b *bench) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.programs, "snapbench"), "--dir", b.dir) //nolint:gosec // it is ours
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("snapbench: %w", err)
	}
	var got struct {
		Files, Bytes, Growth                  int64
		First                                 time.Duration
		Walks, Snapshots, Unchanged, Restores stat.Times
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	b.row(fmt.Sprintf("a look at %d files, %d MB", got.Files, got.Bytes/1e6), "%s", got.Walks)
	b.row("the first snapshot", "%s", stat.Milliseconds(got.First))
	b.row("a snapshot with nothing changed", "%s", got.Unchanged)
	for _, x := range []struct {
		name  string
		times stat.Times
		goal  time.Duration
	}{
		{"a snapshot with 20 files changed", got.Snapshots, 80 * time.Millisecond},
		{"a restore of those 20", got.Restores, 100 * time.Millisecond},
	} {
		b.row(x.name, "%s", x.times)
		b.goal(x.times.At(0.5) < x.goal, "%s at the median, %.1f looks; goal: %s", stat.Milliseconds(x.times.At(0.5)),
			float64(x.times.At(0.5))/float64(got.Walks.At(0.5)), stat.Milliseconds(x.goal))
	}
	b.goal(got.Growth < 100<<10, "the store grew by at most %.1f KiB more than the compressed changed files; goal: 100 KiB", float64(got.Growth)/1024)
	return nil
}
