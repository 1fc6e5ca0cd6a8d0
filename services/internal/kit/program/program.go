// Package program is the frame of every main function: it ends the work on a signal and turns an error into an exit code.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// ExitError ends a program with a code of its own. An ExitError without Err prints nothing more.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of the error within, if any.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the error within.
func (e *ExitError) Unwrap() error { return e.Err }

// Main calls run with the arguments after the program's name and exits with its code: 0 without an error and after
// --help, 2 when the configuration is wrong, an ExitError's code, 1 otherwise. The context ends on SIGINT and SIGTERM;
// run then has to finish, and a second signal kills the process at once. GOGC, if it is set, decides when garbage is
// collected.
func Main(run func(ctx context.Context, args []string) error) {
	if os.Getenv("GOGC") == "" {
		tuneCollector()
	}
	os.Exit(do(context.Background(), returningMemory(run), os.Args[1:], os.Stderr))
}

// ErrSignal is the cause of the context's end after a signal.
var ErrSignal = errors.New("program: a signal stopped the program")

func do(ctx context.Context, run func(ctx context.Context, args []string) error, args []string, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-signals:
			signal.Stop(signals) // from here on a signal has its default effect: it kills
			cancel(ErrSignal)
		case <-done:
			signal.Stop(signals)
		}
	}()
	err := run(ctx, args)
	close(done)
	<-watched
	return exitCode(err, stderr)
}

func exitCode(err error, stderr io.Writer) int {
	var (
		exit  *ExitError
		wrong *config.Error
	)
	switch {
	case err == nil, errors.Is(err, config.ErrHelp), errors.Is(err, ErrSignal): // stopped before it had begun
		return 0
	case errors.As(err, &exit):
		if exit.Err != nil {
			_, _ = fmt.Fprintln(stderr, "error:", exit.Err)
		}
		return exit.Code
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 2
	default:
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 1
	}
}
