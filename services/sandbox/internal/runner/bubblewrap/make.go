package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// body is a pool.Body: one call of bubblewrap.
type body struct {
	spec    box.Sandbox
	cmd     *exec.Cmd
	init    int
	unblock *os.File            // writing here lets init start
	hide    func() <-chan error // hides the folders, which the sandbox has mounted by now; tells when that is done
	clear   func() <-chan error // removes their place once init runs; tells when that is done
	part    func() <-chan error // ends bubblewrap itself, which is not needed once init runs; tells when it is gone
	furnish func() error        // adds what only a running sandbox can get
	letGo   func() error        // closes the descriptor of init that furnish uses
}

// Make implements pool.Maker.
func (m *maker) Make(ctx context.Context, b pool.Build) (_ pool.Body, err error) {
	f, err := m.folders(b.Spec)
	if err != nil {
		return nil, fmt.Errorf("show the workspace to the sandbox: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.hide(), f.remove())
		}
	}()
	v, err := m.invoke(b.Spec, f, b.Socket)
	if err != nil {
		return nil, fmt.Errorf("prepare the sandbox: %w", err)
	}
	defer v.close()
	cmd := m.command(b.Spec.Owner, v, b.Errors)
	if err := m.thread.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start bubblewrap: %w", err)
	}
	v.closeInherited()
	made := &body{spec: b.Spec, cmd: cmd, hide: later(f.hide), part: later(func() error { return end(cmd) })}
	made.clear = later(func() error { return errors.Join(<-made.hide(), f.remove()) })
	if made.init, err = v.identify(ctx); err != nil {
		_ = end(cmd)
		return nil, err
	}
	held, err := unix.PidfdOpen(made.init, 0) // while it certainly lives
	if err != nil {
		_ = end(cmd)
		return nil, fmt.Errorf("take hold of the sandbox's first process: %w", err)
	}
	made.letGo = sync.OnceValue(func() error { return unix.Close(held) })
	made.furnish = func() error {
		if b.Spec.Owner == box.Self {
			return nil // only root can do that
		}
		return m.furnish(held)
	}
	made.unblock, v.unblock = v.unblock, nil
	made.hide() // clear waits for it
	return made, nil
}

func (m *maker) command(o box.Owner, v *invocation, complaints *os.File) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:       m.path,
		Args:       append([]string{m.name}, v.args...),
		Env:        []string{"PATH=" + m.layout.Path},
		Dir:        "/",
		Stderr:     complaints,
		ExtraFiles: v.inherited,
		// Its own process group keeps signals to the service's group away.
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	if o != box.Self {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)}
	}
	return cmd
}

// identify reads the sandbox's first process.
func (v *invocation) identify(ctx context.Context) (int, error) {
	deadline, _ := ctx.Deadline()
	if err := v.info.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(v.info).Decode(&info); err != nil || info.Child <= 1 {
		if os.IsTimeout(err) {
			return 0, errors.New("bubblewrap did not build the sandbox in time")
		}
		return 0, errors.New("bubblewrap could not build the sandbox")
	}
	return info.Child, nil
}

// later returns a function that runs f once, in the background of its first caller.
func later(f func() error) func() <-chan error {
	return sync.OnceValue(func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- f() }()
		return done
	})
}

// Init implements pool.Body.
func (b *body) Init() int { return b.init }

// Release lowers the limits and lets init run.
func (b *body) Release() error {
	if err := pool.Limit(b.init, b.spec.Owner, pool.Resources(b.spec.Limits)); err != nil {
		return err
	}
	_, err := b.unblock.Write([]byte{1})
	return err
}

// Complete implements pool.Body. Bubblewrap would now only wait for init's end, and take as much memory as
// a third of init.
func (b *body) Complete() error {
	b.clear() // Wait waits for both
	b.part()
	return errors.Join(b.furnish(), b.letGo())
}

// end ends bubblewrap. Before init runs, that also ends the sandbox.
func end(cmd *exec.Cmd) error {
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // an error, because it was killed
	return nil
}

// Kill implements pool.Body: a bubblewrap that waits to be released takes init with it.
func (b *body) Kill() { _ = b.cmd.Process.Kill() }

// Wait implements pool.Body.
func (b *body) Wait() error {
	return errors.Join(<-b.part(), <-b.clear(), b.letGo(), b.unblock.Close())
}
