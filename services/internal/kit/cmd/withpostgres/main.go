// Command withpostgres runs a command with a throw-away Postgres, whose address it puts into TEST_DATABASE_URL:
//
//	withpostgres go test ./...
//
// It passes signals on and ends with the command's exit code. When TEST_DATABASE_URL is set already, that server is used.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(code)
}

// run returns the exit code: the command's, 125 without a database, 127 when the command cannot be started.
func run(args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: withpostgres COMMAND [ARGUMENT...]")
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if os.Getenv(pgtest.Env) == "" {
		s, startErr := pgserver.Start(context.Background(), "")
		if startErr != nil {
			return 125, startErr
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		if err := os.Setenv(pgtest.Env, s.URL()); err != nil {
			return 125, err
		}
	}
	return supervise(args, signals)
}

// supervise runs the command in a process group of its own, so that a signal reaches it and its children
// once.
func supervise(args []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // running what it is given is its purpose, and signals end it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	done, passed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(passed)
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok {
					_ = syscall.Kill(-cmd.Process.Pid, n) // it may have ended in between
				}
			case <-done:
				return
			}
		}
	}()
	err := cmd.Wait()
	close(done)
	<-passed
	return exitCode(cmd, err)
}

// exitCode returns the command's code, or 128 plus the signal that ended it, like a
// shell.
func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
