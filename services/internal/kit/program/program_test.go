package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// The test binary is also the program under test: with this variable set it runs one of the functions below.
const roleEnv = "PROGRAM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "waits":
		Main(func(ctx context.Context, _ []string) error {
			fmt.Println("ready")
			<-ctx.Done()
			fmt.Println("cause:", context.Cause(ctx))
			return nil
		})
	case "stubborn":
		Main(func(ctx context.Context, _ []string) error {
			fmt.Println("ready")
			<-ctx.Done()
			fmt.Println("ready")
			select {}
		})
	default:
		goleak.VerifyTestMain(m)
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"no error":                     {nil, 0, ""},
		"help":                         {fmt.Errorf("load: %w", config.ErrHelp), 0, ""},
		"any error":                    {errors.New("it broke"), 1, "error: it broke\n"},
		"a signal that ends the start": {fmt.Errorf("session: %w", ErrSignal), 0, ""},
		"a wrong configuration":        {&config.Error{Name: "x", Faults: []string{"f"}}, 2, "error: the configuration of x is wrong: f\n"},
		"a code with its own words":    {fmt.Errorf("outer: %w", &ExitError{Code: 3, Err: errors.New("turn failed")}), 3, "error: turn failed\n"},
		"a code that needs no words":   {&ExitError{Code: 4}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			code := do(t.Context(), func(_ context.Context, args []string) error {
				if len(args) != 1 || args[0] != "a" {
					t.Errorf("arguments %q", args)
				}
				return c.err
			}, []string{"a"}, &b)
			if code != c.code || b.String() != c.stderr {
				t.Errorf("code %d, stderr %q", code, b.String())
			}
		})
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("the first "+sig.String()+" ends the context", func(t *testing.T) {
			p := start(t, "waits")
			p.await("ready")
			p.signal(sig)
			p.await("cause: " + ErrSignal.Error())
			if err := p.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		t.Run("the second "+sig.String()+" kills", func(t *testing.T) {
			p := start(t, "stubborn")
			p.await("ready")
			p.signal(sig)
			p.await("ready") // its context has ended
			p.signal(sig)
			_ = p.cmd.Wait() // How it ended is in its state.
			status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != sig {
				t.Errorf("it ended with %v", status)
			}
		})
	}
}

type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
}

func start(t *testing.T, role string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{t, cmd, bufio.NewScanner(r)}
}

func (p *process) await(line string) {
	p.t.Helper()
	if !p.out.Scan() || p.out.Text() != line {
		p.t.Fatalf("the program said %q, want %q", p.out.Text(), line)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
