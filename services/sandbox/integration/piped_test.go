package integration

import (
	"context"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestAPipedCommandWritesMoreThanIsKept(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(c *sandbox.Config) { c.Limits.Output = 1000 })
		r, err := c.exec(t.Context(), "head -c 300000 /dev/zero | tr '\\0' x; echo err >&2; exit 3", func(s *sandboxv1.ExecStart) { s.Piped = true })
		if err != nil || len(r.out) != 300_000 || r.err != "err\n" || r.GetExitCode() != 3 || r.GetOutputTruncated() || len(r.GetLimitsHit()) > 0 {
			t.Errorf("%d bytes, %q, %v, %v", len(r.out), r.err, r.ExecExited, err)
		}
	})
}

func TestAPipedCommandAnswersItsInput(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Piped: true, Stdin: true, Argv: []string{"cat"}})
	for range 3 {
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("line\n")}}})
		if m, err := stream.Recv(); err != nil || string(m.GetStdout().GetData()) != "line\n" {
			t.Fatalf("%v, %v", m, err)
		}
	}
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Close: true}}})
	if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
		t.Errorf("%v, %v", r.ExecExited, err)
	}
}

func TestAPipedCommandEndsWithItsStream(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"one that waits": "echo ready; exec sleep 600", "one that writes": "exec yes ready"} {
		t.Run(name, func(t *testing.T) {
			c := open(t, sandbox.LevelBasic)
			ctx, drop := context.WithCancel(t.Context())
			call := c.call()
			start := &sandboxv1.ExecStart{Call: call, Piped: true, Argv: []string{"bash", "-c", script}}
			stream := c.launch(ctx, t, start)
			if m, err := stream.Recv(); err != nil || !strings.HasPrefix(string(m.GetStdout().GetData()), "ready\n") {
				t.Fatalf("%v, %v", m, err)
			}
			second, err := c.execs.Exec(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			send(t, second, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{Call: call}}})
			_, err = second.Recv()
			wantReason(t, err, "CALL_ID_REUSED")
			drop()
			// CancelExec returns when nothing of the command runs any more.
			r, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: call})
			if err != nil || r.GetExited().GetReason() != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}
