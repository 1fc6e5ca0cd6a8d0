package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// startTimeout limits how long the runtime may take to release init.
const startTimeout = 20 * time.Second

// body is a pool.Body: one container.
type body struct {
	m    *maker
	name string
	init int
}

// Make implements pool.Maker.
func (m *maker) Make(ctx context.Context, b pool.Build) (_ pool.Body, err error) {
	if b.Spec.Owner == box.Self {
		return nil, errors.New("commands would run as root: give the workspace a user of its own")
	}
	if m.own {
		return m.makeGuest(ctx, b)
	}
	made := &body{m: m, name: b.Name}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(ctx, b.Name))
		}
	}()
	mounts, err := b.Spec.MountList()
	if err != nil {
		return nil, err
	}
	bundle := m.bundle(b.Name)
	var spec *specs.Spec
	if err := m.writeBundle(bundle, b, originals(mounts), func(s *specs.Spec) error { spec = s; return nil }); err != nil {
		return nil, err
	}
	pidFile := filepath.Join(bundle, "pid")
	cmd := m.command(ctx, "create", "--bundle", bundle, "--pid-file", pidFile, "--preserve-fds", "2", b.Name)
	// Runtimes change the owner of their standard streams to the container's user, even of the machine's
	// /dev/null.
	nothing, err := ended()
	if err != nil {
		return nil, err
	}
	defer func() { _ = nothing.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nothing, b.Errors, b.Errors
	cmd.ExtraFiles = []*os.File{b.Socket, m.image} // the first is wire.FD, the second imageFD
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("create the container: %w", err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return nil, fmt.Errorf("find the container's first process: %w", err)
	}
	made.init, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || made.init <= 1 {
		return nil, fmt.Errorf("find the container's first process: the runtime says %q", text)
	}
	return made, made.show(spec, b.Spec, mounts)
}

// ended returns an input at its end.
func ended() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return r, w.Close()
}

// writeBundle writes the description for the runtime. A sandbox with mounts outside of its workspace has
// its own root with their places, which other sandboxes must not see. change modifies the description.
func (m *maker) writeBundle(bundle string, b pool.Build, originals []string, change func(*specs.Spec) error) error {
	if err := os.MkdirAll(bundle, 0o711); err != nil { // the container's root user passes through
		return err
	}
	spec := m.spec(b.Spec, b.Name)
	if len(originals) > 0 {
		spec.Root.Path = filepath.Join(bundle, "root")
		if err := m.layout.Build(spec.Root.Path, originals...); err != nil {
			return fmt.Errorf("make the container's root: %w", err)
		}
	}
	if err := change(spec); err != nil {
		return err
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bundle, "config.json"), raw, 0o600)
}

// show gives a container its mounts, with restricted rights.
func (b *body) show(spec *specs.Spec, s box.Sandbox, mounts []box.Mount) error {
	held, err := unix.PidfdOpen(b.init, 0)
	if err != nil {
		return fmt.Errorf("take hold of the container's first process: %w", err)
	}
	defer func() { _ = unix.Close(held) }()
	if err := restrict(spec.Mounts, held); err != nil || len(mounts) == 0 {
		return err
	}
	return showMounts(s, mounts, held)
}

// Init implements pool.Body.
func (b *body) Init() int { return b.init }

// Release implements pool.Body.
func (b *body) Release() error { return b.m.start(b.name) }

// start releases a container's init.
func (m *maker) start(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if out, err := m.command(ctx, "start", name).CombinedOutput(); err != nil {
		return fmt.Errorf("start the container: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Complete implements pool.Body: nothing from the making is left to release.
func (b *body) Complete() error { return nil }

// Kill implements pool.Body: the end of init ends all processes.
func (b *body) Kill() {}

// Wait implements pool.Body.
func (b *body) Wait() error { return b.m.remove(context.Background(), b.name) }
