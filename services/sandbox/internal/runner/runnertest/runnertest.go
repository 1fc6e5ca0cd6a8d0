// Package runnertest is the common test suite of all drivers of sandboxes.
package runnertest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Subject is a driver under test.
type Subject struct {
	// New makes a runner and closes it with the test.
	New func(t *testing.T, o Options) box.Runner
	// Owner is the owner of workspaces.
	Owner box.Owner
	// Sources is a folder for the sources of mounts; empty means a home directory.
	Sources string
	Has     Features
}

// Options of a runner.
type Options struct {
	Max  int
	Idle time.Duration
	// Network serves the way out of sandboxes; nil: they have none.
	Network func(box.Sandbox, net.Listener) (io.Closer, error)
}

// Features are the differences between drivers and levels.
type Features struct {
	// Isolated: namespaces, a curated root, a user and a filter of its own; a /tmp
	// that lasts as long as the sandbox. Sandboxes are counted, and end when idle.
	Isolated bool
	// Groups: control groups bound all processes of a sandbox together. Commands share
	// one sandbox, which can be frozen.
	Groups bool
	// LocalInit: the first process of a sandbox is one of this machine.
	LocalInit bool
	// Written: what commands write to disks is counted.
	Written bool
	// Mounts: sandboxes show further folders of the host.
	Mounts bool
	// Mapped: the files of writable mounts may be another user's than the commands.
	Mapped bool
	// Network: sandboxes may have a way out.
	Network bool
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	for _, all := range [][]test{commandTests, endTests, sandboxTests, siblingTests, mountTests, networkTests} {
		for _, x := range all {
			t.Run(x.name, func(t *testing.T) {
				for _, n := range x.needs {
					if !n.of(s.Has) {
						t.Skip("the driver has no " + n.name + " here")
					}
				}
				x.run(t, s)
			})
		}
	}
}

type test struct {
	name  string
	needs []need
	run   func(t *testing.T, s Subject)
}

// need is a feature that a test requires.
type need struct {
	name string
	of   func(Features) bool
}

var (
	isolation = need{"isolation", func(f Features) bool { return f.Isolated }}
	groups    = need{"control groups", func(f Features) bool { return f.Groups }}
	mounts    = need{"mounts", func(f Features) bool { return f.Mounts }}
	networks  = need{"network", func(f Features) bool { return f.Network }}
	written   = need{"count of written bytes", func(f Features) bool { return f.Written }}
	localInit = need{"init on this machine", func(f Features) bool { return f.LocalInit }}
)

func (s Subject) limits() box.Limits {
	return box.Limits{
		MemoryBytes: 1 << 30, Processes: 64, CPUs: 2, FileBytes: 1 << 20, OpenFiles: 128,
		TmpBytes: 1 << 20, ShmBytes: 1 << 20,
	}
}

// command returns a command in a workspace of its own.
func (s Subject) command(t *testing.T, script string) box.Command {
	t.Helper()
	l := s.limits()
	base := t.TempDir()
	c := box.Command{Argv: []string{"bash", "-c", script}, Dir: box.WorkspacePath, Limits: l, Sandbox: box.Sandbox{
		ID: "test-" + strings.ReplaceAll(strings.TrimPrefix(base, os.TempDir()), "/", "-"), Owner: s.Owner, Limits: l,
		Workspace: filepath.Join(base, "w"), Home: filepath.Join(base, "h"),
	}}
	for _, dir := range []string{c.Sandbox.Workspace, c.Sandbox.Home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if s.Owner == box.Self {
			continue
		}
		if err := os.Chown(dir, s.Owner.UID, s.Owner.GID); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// with returns the next command of the same workspace.
func with(c box.Command, script string) box.Command {
	c.Argv = []string{"bash", "-c", script}
	return c
}

// result is an ended command.
type result struct {
	out, err string
	box.Exit
}

// start starts a command that must start.
func start(t *testing.T, r box.Runner, c box.Command) box.Process {
	t.Helper()
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch starts a command that prints a first line, and reads that line.
func launch(t *testing.T, r box.Runner, c box.Command) box.Process {
	t.Helper()
	p := start(t, r, c)
	if line := readLine(t, p.Stdout()); line != "ready\n" && line != "ready\r\n" {
		t.Fatalf("it says %q", line)
	}
	return p
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	for !slices.Contains(line, '\n') {
		b := make([]byte, 1)
		if _, err := r.Read(b); err != nil {
			t.Fatalf("it ends after %q: %v", line, err)
		}
		line = append(line, b[0])
	}
	return string(line)
}

// finish reads all output and waits for the end.
func finish(p box.Process) result {
	out, errOut := make(chan string, 1), make(chan string, 1)
	read := func(r io.ReadCloser, to chan string) {
		if r == nil {
			to <- ""
			return
		}
		b, _ := io.ReadAll(r)
		_ = r.Close()
		to <- string(b)
	}
	go read(p.Stdout(), out)
	go read(p.Stderr(), errOut)
	if p.Stdin() != nil {
		defer func() { _ = p.Stdin().Close() }()
	}
	exit := p.Wait()
	return result{<-out, <-errOut, exit}
}

// run runs a command to its end.
func run(t *testing.T, r box.Runner, c box.Command) result {
	t.Helper()
	return finish(start(t, r, c))
}

// ran fails the test unless the command wrote out and exited with 0.
func (x result) ran(t *testing.T, what, out string) {
	t.Helper()
	if x.out != out || x.Status != 0 || x.Signal != 0 || x.Lost {
		t.Errorf("%s: %q and %q, %+v, want %q", what, x.out, x.err, x.Exit, out)
	}
}
