// Package none runs commands as plain processes of the service's own user, with all of that user's rights.
// It is for developers whose machine has nothing better, and who trust their commands.
//
// At a command's end its processes are found by a mark in their environment. A process that clears the
// mark, or becomes another user, is missed.
package none

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Includes lists what this driver provides; it is shown as the isolation.
var Includes = []string{"no-isolation", "clean-environment", "workspace-limit", "output-limit", "wall-time-limit"}

// Runner is a box.Runner.
type Runner struct {
	path string
	null *os.File

	mu     sync.Mutex // guards what follows
	all    map[string]map[*process]bool
	closed bool
}

// New makes a runner and logs a warning.
func New(ctx context.Context, log *slog.Logger) (*Runner, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	log.WarnContext(ctx, "THERE IS NO ISOLATION: commands of agents run as the service's own user, and may read, change and send whatever that user may. "+
		"This is for development alone: choose another `driver` for anything else", "driver", "none", "uid", os.Getuid())
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return &Runner{path: path, null: null, all: map[string]map[*process]bool{}}, nil
}

// Start implements box.Runner.
func (r *Runner) Start(ctx context.Context, c box.Command) (box.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	if c.Sandbox.Network != "" {
		return nil, errors.New("the workspace has rules for its network, which the driver `none` cannot enforce: commands would have all of the machine's")
	}
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	p := &process{r: r, workspace: c.Sandbox.Workspace, mark: markName + "=" + rand.Text(), ended: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, box.ErrClosed
	}
	if err := p.start(c); err != nil {
		return nil, err
	}
	if p.reaped {
		return p, nil // it could not be executed
	}
	if r.all[p.workspace] == nil {
		r.all[p.workspace] = map[*process]bool{}
	}
	r.all[p.workspace][p] = true
	go p.follow() // ends with the process, which Stop and Close wait for
	return p, nil
}

// Warm implements box.Runner: there is nothing to make.
func (r *Runner) Warm(context.Context, box.Sandbox) error { return nil }

// Move implements box.Runner: nothing runs in the workspace.
func (r *Runner) Move(string, box.Sandbox) {}

// Stop implements box.Runner.
func (r *Runner) Stop(workspace string) {
	r.mu.Lock()
	var all []*process
	for p := range r.all[workspace] {
		all = append(all, p)
	}
	r.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	for _, p := range all {
		<-p.ended
	}
}

// Freeze implements box.Runner: it cannot freeze.
func (r *Runner) Freeze(context.Context, string) (bool, func(), error) {
	return false, func() {}, nil
}

// Close ends all running commands. Another call does nothing.
func (r *Runner) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	var workspaces []string
	for w := range r.all {
		workspaces = append(workspaces, w)
	}
	r.mu.Unlock()
	for _, w := range workspaces {
		r.Stop(w)
	}
	return r.null.Close()
}

func (r *Runner) forget(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all[p.workspace], p)
	if len(r.all[p.workspace]) == 0 {
		delete(r.all, p.workspace)
	}
}

// hostPath returns the host's path of a path inside a sandbox: commands see the workspace at its own path.
func hostPath(s box.Sandbox, dir string) string {
	for inside, outside := range map[string]string{box.WorkspacePath: s.Workspace, box.HomePath: s.Home} {
		if rest, ok := strings.CutPrefix(dir+"/", inside+"/"); ok {
			return filepath.Join(outside, rest)
		}
	}
	return dir
}
