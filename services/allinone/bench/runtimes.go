package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

const (
	// keptGoal bounds what a CLI that runs already adds until the model is asked.
	keptGoal = 60 * time.Millisecond
	// runtimeRounds is how many turns of each kind are measured.
	runtimeRounds = 20
	// runtimeTurns is how many turns run at once when their memory is measured.
	runtimeTurns = 4
)

// measureRuntimes compares the time until the first token, and the memory of turns that run at once.
func measureRuntimes(ctx context.Context, b *bench) error {
	dir, err := filepath.Abs(filepath.Join(b.programs, "claude-code"))
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "claude")
	switch _, err := os.Stat(program); {
	case errors.Is(err, os.ErrNotExist):
		b.printf("   skipped: the Claude Code CLI is not installed; run `make claude-code`\n")
		return nil
	case err != nil:
		return err
	}
	first := map[string]stat.Times{}
	for _, kind := range []struct{ name, agent, keep string }{
		{"native", "native", "1m"}, {"claude-code, started for each message", "cli", "1ms"}, {"claude-code, kept alive", "cli", "10m"},
	} {
		asked, text, err := b.runtime(ctx, program, kind.agent, kind.keep)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		first[kind.name] = text
		b.row(kind.name, "first text %s, of it until the model is asked %s", text, asked)
	}
	added := first["claude-code, kept alive"].At(0.5) - plan.First
	b.goal(added <= keptGoal, "the second turn of a CLI that is kept alive: first text after %s beside the model's %s; goal: %s",
		stat.Milliseconds(added), stat.Milliseconds(plan.First), stat.Milliseconds(keptGoal))
	return b.runtimeMemory(ctx, program)
}

// runtimeShape returns a Fairlead with an agent of each runtime.
func (b *bench) runtimeShape(program, keep string) fleet.Shape {
	s := b.shape("", false)
	s.Config = fmt.Sprintf(`
session:
  runtimes: {claude-code: {program: %q, keep-alive: %s, processes: 32}}
  agents:
    native: {profile: full, prompt: Be careful., tools: [Bash, Read]}
    cli: {runtime: claude-code, profile: full, prompt: Be careful., tools: [Bash, Read]}
sandbox: {read-only-paths: [%q]}
`, program, keep, filepath.Dir(program))
	return s
}

// runtime measures the turns of a session after its first one.
func (b *bench) runtime(ctx context.Context, program, agent, keep string) (asked, text stat.Times, err error) {
	f, err := fleet.Run(ctx, b.runtimeShape(program, keep))
	if err != nil {
		return nil, nil, err
	}
	defer f.Stop()
	session, err := f.SessionOf(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	for i := range runtimeRounds + 1 {
		s, err := turn(ctx, f, session, plan, nil)
		if err != nil {
			return nil, nil, err
		}
		if len(s.Tokens) == 0 {
			return nil, nil, errors.New("a turn brought no text")
		}
		if i > 0 {
			asked = append(asked, s.Arrived.Sub(s.Begun))
			text = append(text, s.Tokens[0].Received.Sub(s.Begun))
		}
		if keep == "1ms" { // the CLI has ended before the next message
			for begun := time.Now(); memory(program) > 0 && time.Since(begun) < 10*time.Second; {
				sleepUntil(ctx, time.Now().Add(10*time.Millisecond))
			}
		}
	}
	return asked, text, nil
}

// runtimeMemory measures the memory of turns that run at once.
func (b *bench) runtimeMemory(ctx context.Context, program string) error {
	for _, agent := range []string{"native", "cli"} {
		f, err := fleet.Run(ctx, b.runtimeShape(program, "10m"))
		if err != nil {
			return err
		}
		before := f.RSS() + memory(program)
		var g errgroup.Group
		slow := provider.Plan{Tokens: 100, Every: 100 * time.Millisecond, First: 100 * time.Millisecond}
		for range runtimeTurns {
			g.Go(func() error {
				session, err := f.SessionOf(ctx, agent)
				if err == nil {
					_, err = turn(ctx, f, session, slow, nil)
				}
				return err
			})
		}
		sleepUntil(ctx, time.Now().Add(8*time.Second)) // all of them stream
		used := f.RSS() + memory(program) - before
		err = g.Wait()
		f.Stop()
		if err != nil {
			return err
		}
		b.row(fmt.Sprintf("%d turns at once: %s", runtimeTurns, agent), "%.1f MB each (Fairlead's RSS and the proportional memory of CLIs)", float64(used)/runtimeTurns/(1<<20))
	}
	return nil
}

// memory returns the proportional memory of the processes of a program, in bytes.
func memory(program string) (total int64) {
	all, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, name := range all {
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || !strings.HasPrefix(string(line), program+"\x00") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if rest, ok := strings.CutPrefix(s.Text(), "Pss:"); ok {
				kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				total += kilobytes << 10
			}
		}
		_ = f.Close()
	}
	return total
}
