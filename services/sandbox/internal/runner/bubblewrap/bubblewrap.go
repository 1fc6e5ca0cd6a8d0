// Package bubblewrap runs commands in sandboxes that bubblewrap makes, one long-lived sandbox to a
// workspace: all namespaces, a curated read-only root, no network, no capabilities, a system call filter,
// and limits that are in place before the first instruction.
//
// The order of the steps avoids races. Bubblewrap builds the sandbox and waits. The service learns the
// first process, moves it into its control group and lowers its limits. Only then that process is released.
// Package pool does the rest.
package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// monitorSlack is how late the runtime's monitor in init may wake up. Otherwise it would wake every 0.1 ms
// while a command runs, and take processor time from it. Init has one goroutine, so there is nothing to
// monitor.
const monitorSlack = 20 * time.Millisecond

// plainName is bubblewrap's own name.
const plainName = "bwrap"

// Options of a Runner.
type Options struct {
	// Name distinguishes this runner's processes from others on the machine, which it never sweeps. If
	// empty, there is nothing to sweep.
	Name string
	// Path of bubblewrap; empty searches PATH.
	Path string
	// Init is the file that holds init; empty means the embedded one.
	Init string
	// ReadOnly are further host paths to show, at the same place. Each must exist.
	ReadOnly []string
	// Groups bounds sandboxes by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// OtherUsers makes commands run as other users than the service's own, which needs root.
	OtherUsers bool
	// Max is the largest number of sandboxes; zero means no limit.
	Max int
	// Network serves the listener of a sandbox that has a network until the sandbox has ended. It owns the
	// listener. If nil, no sandbox may have a network.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// Trust is the host's file of certificates that sandboxes with a network trust, shown at TrustPath;
	// empty shows none.
	Trust string
	// Idle is after how long an idle sandbox is ended; zero means never.
	Idle time.Duration
	Log  *slog.Logger
}

// maker is a pool.Maker.
type maker struct {
	path     string
	image    *os.File // init
	layout   *rootfs.Layout
	name     string // of its processes
	thread   *rootfs.Thread
	stage    *rootfs.Stage // nil if all commands run as the service's own user
	etc      *etc          // nil likewise
	fixtures *fixtures     // nil likewise
}

// Runner runs commands in sandboxes that bubblewrap made.
type Runner struct {
	*pool.Runner
	name string
}

// New finds bubblewrap. The caller must close the runner after its last command has ended.
func New(ctx context.Context, o Options) (*Runner, error) {
	m, err := newMaker(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := pool.New(pool.Options{Maker: m, Path: m.layout.Path, Groups: o.Groups, Max: o.Max, Idle: o.Idle, Network: o.Network, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Runner{Runner: r, name: m.name}, nil
}

func newMaker(ctx context.Context, o Options) (*maker, error) {
	path := o.Path
	if path == "" {
		found, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, errors.New("bubblewrap is missing: apt-get install -y bubblewrap")
		}
		path = found
	}
	if err := checkOptions(ctx, path); err != nil {
		return nil, err
	}
	l, err := rootfs.Find(o.ReadOnly, []string{"/usr/local/go"})
	if err != nil {
		return nil, err
	}
	if o.Trust != "" {
		l.Extra = append(l.Extra, rootfs.Bind{Path: pool.TrustPath, Source: o.Trust})
	}
	image, err := pool.OpenInit(o.Init)
	if err != nil {
		return nil, err
	}
	m := &maker{path: path, image: image, layout: l, name: plainName, thread: rootfs.NewThread(monitorSlack)}
	if o.Name != "" {
		m.name += "-" + o.Name
	}
	if o.OtherUsers {
		err = m.setUpStage()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// setUpStage makes the stage and the parts that every sandbox is shown.
func (m *maker) setUpStage() (err error) {
	if m.stage, err = rootfs.NewStage(m.thread); err != nil {
		return err
	}
	m.etc = newETC(m.stage, m.layout)
	if m.fixtures, err = newFixtures(m.stage); err != nil {
		return err
	}
	if err := m.stage.ShowAll(m.layout.Extra); err != nil {
		return err
	}
	at, err := filepath.EvalSymlinks(m.path)
	if err != nil {
		return fmt.Errorf("find bubblewrap: %w", err)
	}
	// Its libraries may be beside it, as in /nix.
	keep := append([]string{"/proc", "/etc/ld.so.cache", filepath.Join("/", strings.Split(at, "/")[1])}, rootfs.Devices...)
	for _, b := range m.layout.Binds {
		if !below(b.Path) {
			keep = append(keep, b.Source)
		}
	}
	return m.stage.Keep(keep)
}

// Close implements pool.Maker.
func (m *maker) Close() error {
	m.thread.Close()
	return m.image.Close()
}

// checkOptions reports which option an old bubblewrap lacks, before commands fail.
func checkOptions(ctx context.Context, path string) error {
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("bubblewrap at %s does not run: %w: apt-get install -y bubblewrap", path, err)
	}
	for _, option := range []string{"--disable-userns", "--size", "--info-fd", "--block-fd", "--as-pid-1"} {
		if !strings.Contains(string(help), option) {
			return fmt.Errorf("bubblewrap at %s is too old, it has no %s: apt-get update && apt-get install -y bubblewrap", path, option)
		}
	}
	return nil
}
