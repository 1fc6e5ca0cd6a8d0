package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measureSandbox has the sandbox service measure itself, and prints its output.
func measureSandbox(ctx context.Context, b *bench) error {
	if os.Getuid() != 0 {
		b.row("not measured", "the level full needs root")
		return nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.programs, "sandboxbench")) //nolint:gosec // it is ours
	cmd.Stdout, cmd.Stderr = b.out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sandboxbench: %w", err)
	}
	return nil
}
