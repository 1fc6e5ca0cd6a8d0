package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Process is a program that can be killed and started again, at the same address and with the same data. Its methods are
// not safe for concurrent use; different processes are independent.
type Process struct {
	Name    string
	Service string

	program string
	args    []string
	env     []string
	log     string // file
	address string // that answers once the program serves

	cmd    *exec.Cmd
	exited chan struct{}
	starts int
}

// settle is the longest time from a program's start until it answers.
const settle = 60 * time.Second

// spawn starts the program. It dies with this one.
func (p *Process) spawn() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(p.program, p.args...) //nolint:gosec,noctx // it is built by us, and killed by its own methods
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, p.env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.exited = make(chan struct{})
	p.starts++
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that forked ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its log
			close(p.exited)
		}
	}()
	return <-started
}

// Start starts the program and returns when it serves. It restarts a program that ends before, for example
// because its database is away.
func (p *Process) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	if err := p.spawn(); err != nil {
		return err
	}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.exited:
			if err := p.spawn(); err != nil {
				return err
			}
		default:
		}
		if p.answers(ctx) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve after %s; its log is %s", p.Name, settle, p.log)
		}
	}
}

func (p *Process) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.exited:
		return nil // it has ended by itself
	default:
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", s, p.Name, err)
	}
	return nil
}

// End sends a signal and returns when the program is gone; after grace it is killed, which is an error.
func (p *Process) End(s syscall.Signal, grace time.Duration) error {
	if err := p.Signal(s); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
	}
	_ = p.Signal(syscall.SIGKILL)
	<-p.exited
	return fmt.Errorf("%s did not end within %s of %v", p.Name, grace, s)
}

// Ended reports whether the program has ended by itself.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Panicked reports whether the program's log contains a panic.
func (p *Process) Panicked() bool { return p.logged("\npanic:", `"panic`, "\nfatal error:") }

// Raced reports whether the program's log contains a data race.
func (p *Process) Raced() bool { return p.logged("WARNING: DATA RACE") }

func (p *Process) logged(words ...string) bool {
	text, err := os.ReadFile(p.log)
	return err == nil && slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}
