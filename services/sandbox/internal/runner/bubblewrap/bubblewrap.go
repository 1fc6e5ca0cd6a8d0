// Package bubblewrap runs each command in a sandbox of its own, made with
// bubblewrap: all namespaces, a curated read-only root, no network, no
// capabilities, a system call filter, and limits that are in place before the
// command's first instruction.
//
// The order of a start is what makes it free of races: bubblewrap builds the
// sandbox and then waits; the service learns the sandbox's first process, puts it
// into its control group and lowers its limits; only then is the command let go.
package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// startTimeout bounds what bubblewrap takes to build a sandbox.
const startTimeout = 20 * time.Second

// Options of a Runner.
type Options struct {
	// Path of bubblewrap; empty searches PATH.
	Path string
	// ReadOnly are further host paths to show, at the same place. Each must exist.
	ReadOnly []string
	// Groups bounds commands by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// OtherUsers has commands run as other users than the service's own, which
	// needs root.
	OtherUsers bool
	Log        *slog.Logger
}

// Runner is a box.Runner.
type Runner struct {
	path   string
	layout *layout
	groups cgroup.Hierarchy
	spawn  *spawner
	stage  *stage // nil when all commands run as the service's own user
	log    *slog.Logger
}

// New finds bubblewrap. The runner must be closed, after its last command has
// ended.
func New(ctx context.Context, o Options) (*Runner, error) {
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
	l, err := newLayout(o.ReadOnly, []string{"/usr/local/go"})
	if err != nil {
		return nil, err
	}
	// Descriptors that this process inherited itself are not Go's to have marked:
	// none of them may reach a command.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("keep inherited descriptors from commands: %w", err)
	}
	r := &Runner{path: path, layout: l, groups: o.Groups, spawn: newSpawner(), log: o.Log}
	if !o.OtherUsers {
		return r, nil
	}
	if r.stage, err = newStage(r.spawn); err == nil {
		err = l.show(r.stage)
	}
	if err != nil {
		r.spawn.close()
		return nil, err
	}
	return r, nil
}

// checkOptions says which option an old bubblewrap lacks, instead of failing on
// each command.
func checkOptions(ctx context.Context, path string) error {
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("bubblewrap at %s does not run: %w: apt-get install -y bubblewrap", path, err)
	}
	for _, option := range []string{"--disable-userns", "--size", "--json-status-fd", "--block-fd"} {
		if !strings.Contains(string(help), option) {
			return fmt.Errorf("bubblewrap at %s is too old, it has no %s: apt-get update && apt-get install -y bubblewrap", path, option)
		}
	}
	return nil
}

// Close ends whatever still runs.
func (r *Runner) Close() error {
	r.spawn.close()
	return nil
}

// Start implements box.Runner.
func (r *Runner) Start(ctx context.Context, c box.Command) (box.Process, error) {
	var st unix.Stat_t
	if err := unix.Stat(c.Workspace, &st); err != nil {
		return nil, fmt.Errorf("find the workspace: %w", err)
	}
	f, err := r.folders(c)
	if err != nil {
		return nil, fmt.Errorf("show the workspace to the sandbox: %w", err)
	}
	v, err := r.invoke(c, f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the sandbox: %w", err), f.hide())
	}
	defer v.closeInherited()
	ends, err := newStdio(c)
	if err != nil {
		v.close()
		return nil, errors.Join(fmt.Errorf("prepare the command's input and output: %w", err), f.hide())
	}
	defer ends.closeChild()
	p := &process{stdio: ends, invocation: v, hide: f.hide, pidfd: -1, log: r.log, owner: c.Owner, device: uint64(st.Dev)} //nolint:unconvert // the type is the architecture's
	if err := r.launch(ctx, c, p); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// launch forks bubblewrap, confines what it made, and lets the command go.
func (r *Runner) launch(ctx context.Context, c box.Command, p *process) error {
	if r.groups != nil {
		g, err := r.groups.New(c.ID, cgroup.Limits{
			MemoryBytes: c.Limits.MemoryBytes, Processes: c.Limits.Processes + helpers, CPUs: c.Limits.CPUs,
		})
		if err != nil {
			return err
		}
		p.group = g
	}
	p.cmd = r.command(c, p)
	if err := r.spawn.do(p.cmd.Start); err != nil {
		p.cmd = nil
		if errors.Is(err, unix.E2BIG) {
			return &box.StartError{Message: "the arguments and the environment are too long together"}
		}
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	p.invocation.closeInherited()
	p.closeChild()
	if err := p.identify(ctx); err != nil {
		return err
	}
	if err := p.confine(c); err != nil {
		return fmt.Errorf("%w: bubblewrap: %s", err, p.complaint())
	}
	return nil
}

// confine puts the limits in place and lets the command go.
func (p *process) confine(c box.Command) error {
	if p.group != nil {
		if err := p.group.Add(p.init); err != nil {
			return err
		}
	}
	if err := limit(p.init, c.Owner, resources(c.Limits, p.group != nil)); err != nil {
		return err
	}
	_, err := p.invocation.unblock.Write([]byte{1})
	return errors.Join(err, p.invocation.unblock.Close())
}

func (r *Runner) command(c box.Command, p *process) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:       r.path,
		Args:       append([]string{"bwrap"}, p.invocation.args...),
		Env:        []string{"PATH=" + r.layout.path},
		Dir:        "/",
		Stdin:      p.childIn,
		Stdout:     p.childOut,
		Stderr:     p.childErr,
		ExtraFiles: p.invocation.inherited,
		// A process group of its own: a signal to the service's does not reach it.
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	if c.Owner != box.Self {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.Owner.UID), Gid: uint32(c.Owner.GID)}
	}
	return cmd
}

// identify learns the sandbox's first process and takes hold of it, while it is
// certain to live.
func (p *process) identify(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := p.invocation.info.SetReadDeadline(deadline); err != nil {
		return err
	}
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(p.invocation.info).Decode(&info); err != nil || info.Child <= 1 {
		if os.IsTimeout(err) {
			return errors.New("bubblewrap did not build the sandbox in time")
		}
		return fmt.Errorf("bubblewrap could not build the sandbox: %s", p.complaint())
	}
	fd, err := unix.PidfdOpen(info.Child, 0)
	if err != nil {
		return fmt.Errorf("take hold of the sandbox's first process: %w: %s", err, p.complaint())
	}
	p.init, p.pidfd = info.Child, fd
	return nil
}

// complaint is what bubblewrap wrote before it gave up. It kills it, so that
// reading ends.
func (p *process) complaint() string {
	_ = p.cmd.Process.Kill()
	from := p.errOut
	if from == nil {
		from = p.out
	}
	raw, _ := io.ReadAll(io.LimitReader(from, 4096))
	if text := strings.TrimSpace(string(raw)); text != "" {
		return text
	}
	return "it said nothing"
}
