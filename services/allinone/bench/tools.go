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

// decisionGoal is the most time of a decision at the median.
const decisionGoal = 20 * time.Microsecond

// measureTools has the tools service's own program measure its decisions.
func measureTools(ctx context.Context, b *bench) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.programs, "decisionbench")) //nolint:gosec // it is ours
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("decisionbench: %w", err)
	}
	var got struct {
		Rules, Filters, Grants   int
		Allowed, Granted, Parsed stat.Times
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	micro := func(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1e3) }
	base := got.Parsed.At(0.5)
	b.row("a plain parse of the command", "p50 %s, p99 %s", micro(base), micro(got.Parsed.At(0.99)))
	for name, times := range map[string]stat.Times{"a decision by rules": got.Allowed, "a decision that a grant answers": got.Granted} {
		b.row(fmt.Sprintf("%s: %d rules, %d filters, %d grants", name, got.Rules, got.Filters, got.Grants), "p50 %s, p99 %s", micro(times.At(0.5)), micro(times.At(0.99)))
		b.goal(times.At(0.5) < decisionGoal, "%s: %s at the median, %.1f parses; goal: %s", name, micro(times.At(0.5)), float64(times.At(0.5))/float64(base), micro(decisionGoal))
	}
	return nil
}
