// Command sandboxbench measures the cost of commands and sandboxes, each figure beside its baseline from
// the same run. `make bench` runs it. It is a separate program because the runner is internal to the
// sandbox service. It needs root for the level `full`.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/bubblewrap"
)

// main is as every program's: what is measured collects its garbage as seldom as they do.
func main() { program.Main(run) }

// bench is what the measurements share.
type bench struct {
	rounds, sandboxes int
	loadRounds        int
	only              bool // the load alone
	dir               string
	groups            cgroup.Hierarchy
	log               *slog.Logger
	made              int // workspaces
}

func run(ctx context.Context, args []string) (err error) {
	b := &bench{log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	f := flag.NewFlagSet("sandboxbench", flag.ContinueOnError)
	f.IntVar(&b.rounds, "rounds", 300, "how often each kind of command is run")
	f.IntVar(&b.sandboxes, "sandboxes", 200, "how many sandboxes are made")
	f.IntVar(&b.loadRounds, "load-rounds", 10, "how many commands each session runs under load")
	f.BoolVar(&b.only, "load", false, "measure commands under load alone")
	if err := f.Parse(args); err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return errors.New("the level full needs root: run it as root")
	}
	if b.dir, err = os.MkdirTemp("", "fairlead-sandboxbench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // other users' bubblewrap passes through
		return err
	}
	if b.groups, err = cgroup.Open(cgroup.Root, "fairlead-bench/"+rand.Text()[:8]); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.groups.Close()) }()
	if b.only {
		return b.load(ctx)
	}
	return errors.Join(b.commands(ctx), b.creation(ctx), b.streams(ctx), b.load(ctx))
}

func (b *bench) runner(ctx context.Context) (*bubblewrap.Runner, error) {
	return bubblewrap.New(ctx, bubblewrap.Options{Groups: b.groups, OtherUsers: true, Log: b.log})
}

// sandbox makes the folders of one.
func (b *bench) sandbox() (box.Sandbox, error) {
	b.made++
	s := box.Sandbox{
		ID: fmt.Sprint("s", b.made), Owner: box.Owner{UID: 400_000 + b.made, GID: 400_000 + b.made},
		Workspace: filepath.Join(b.dir, fmt.Sprint("w", b.made)), Home: filepath.Join(b.dir, fmt.Sprint("h", b.made)),
		Limits: box.Limits{
			MemoryBytes: 4 << 30, Processes: 512, CPUs: 2, FileBytes: 1 << 30, OpenFiles: 4096, TmpBytes: 512 << 20, ShmBytes: 64 << 20,
		},
	}
	for _, dir := range []string{s.Workspace, s.Home} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, s.Owner.UID, s.Owner.GID)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// times are measured times.
type times []time.Duration

func (t times) at(q float64) time.Duration {
	slices.Sort(t)
	return t[int(q*float64(len(t)-1)+0.5)]
}

func (t times) String() string {
	return fmt.Sprintf("p50 %s p90 %s (n=%d)", milliseconds(t.at(0.5)), milliseconds(t.at(0.9)), len(t))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func row(name, format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, "   %-44s %s\n", name, fmt.Sprintf(format, args...))
}

func goal(met bool, format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, "   %-4s %s\n", map[bool]string{true: "MET", false: "MISS"}[met], fmt.Sprintf(format, args...))
}
