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
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/warm"
)

// body is a warm.Body: one call of bubblewrap.
type body struct {
	spec    box.Sandbox
	cmd     *exec.Cmd
	init    int
	unblock *os.File            // writing here lets init start
	hide    func() <-chan error // the folders, of which the sandbox has mounts of its own by now; tells when they are
	clear   func() <-chan error // removes their place, when init runs; tells when that is done
	part    func() <-chan error // ends bubblewrap itself, which is not needed once init runs; tells when it is gone
	furnish func() error        // what only a sandbox that is there can be given
	letGo   func() error        // of init, which furnish takes hold of
}

// Make implements warm.Maker.
func (m *maker) Make(ctx context.Context, b warm.Build) (_ warm.Body, err error) {
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
	held, err := unix.PidfdOpen(made.init, 0) // while it is certain to live
	if err != nil {
		_ = end(cmd)
		return nil, fmt.Errorf("take hold of the sandbox's first process: %w", err)
	}
	made.letGo = sync.OnceValue(func() error { return unix.Close(held) })
	made.furnish = func() error {
		if b.Spec.Owner == box.Self {
			return nil // that takes root
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
		// A process group of its own: a signal to the service's does not reach it.
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	if o != box.Self {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)}
	}
	return cmd
}

// identify learns the sandbox's first process.
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

// later is a function that is run once, beside its first caller.
func later(f func() error) func() <-chan error {
	return sync.OnceValue(func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- f() }()
		return done
	})
}

// Init implements warm.Body.
func (b *body) Init() int { return b.init }

// Release lowers the limits and lets init go.
func (b *body) Release() error {
	if err := warm.Limit(b.init, b.spec.Owner, warm.Resources(b.spec.Limits)); err != nil {
		return err
	}
	_, err := b.unblock.Write([]byte{1})
	return err
}

// Complete implements warm.Body. Bubblewrap would only wait for init's end from here on,
// and takes as much memory meanwhile as a third of init does.
func (b *body) Complete() error {
	b.clear() // Wait waits for both
	b.part()
	return errors.Join(b.furnish(), b.letGo())
}

// end ends bubblewrap. Until init runs, that ends the sandbox with it.
func end(cmd *exec.Cmd) error {
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // which is an error, as it was killed
	return nil
}

// Kill implements warm.Body: a bubblewrap that waits to be let go takes init with it.
func (b *body) Kill() { _ = b.cmd.Process.Kill() }

// Wait implements warm.Body.
func (b *body) Wait() error {
	return errors.Join(<-b.part(), <-b.clear(), b.letGo(), b.unblock.Close())
}
