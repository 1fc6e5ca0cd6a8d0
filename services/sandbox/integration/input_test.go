package integration

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestInputGoesToTheCommand(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"wc", "-c"}, Stdin: true})
		for range 5 {
			send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: make([]byte, 300_000)}}})
		}
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("x"), Close: true}}})
		r, err := follow(stream)
		if err != nil || strings.TrimSpace(r.out) != "1500001" {
			t.Errorf("%q, %v", r.out, err)
		}
	})
}

func TestInputThatWasNotAnnouncedIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"sleep", "5"}})
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("x")}}})
	if _, err := follow(stream); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
}

func TestASignalEndsTheCommand(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "echo ready; exec sleep 60"}})
	if m, err := stream.Recv(); err != nil || m.GetStdout() == nil {
		t.Fatalf("%v, %v", m, err)
	}
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Signal{Signal: &sandboxv1.ExecSignal{Signal: 15}}})
	r, err := follow(stream)
	if err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_SIGNALED || r.GetSignal() != 15 {
		t.Errorf("%v, %v", r.ExecExited, err)
	}
}

func TestASignalDoesNotWaitForInputThatNobodyReads(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for name, sizes := range map[string][]int{"a message": {300_000}, "several": {300_000, 700_000, 300_000}} {
			stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "echo ready; exec sleep 60"}, Stdin: true, Timeout: seconds(10)})
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			for _, n := range sizes {
				send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: make([]byte, n)}}})
			}
			send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Signal{Signal: &sandboxv1.ExecSignal{Signal: 15}}})
			if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_SIGNALED || r.GetSignal() != 15 {
				t.Errorf("behind %s: %v, %v", name, r.ExecExited, err)
			}
		}
	})
}

func TestATerminalIsResizedThoughNobodyReadsItsInput(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"bash", "-c", `trap 'echo resized; exit' WINCH; echo ready; while :; do sleep 0.05; done`}, Stdin: true,
			Terminal: &sandboxv1.TerminalSize{Rows: 10, Columns: 20}, Timeout: seconds(10),
		})
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte(strings.Repeat("line\n", 10_000))}}})
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Resize{Resize: &sandboxv1.TerminalSize{Rows: 11, Columns: 21}}})
		if r, err := follow(stream); err != nil || !strings.Contains(r.out, "resized") {
			t.Errorf("%v, %v", r.ExecExited, err)
		}
	})
}

func TestACallerGoesAwayThoughItsInputIsNotRead(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	ctx, drop := context.WithCancel(t.Context())
	s := &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "until [ -e go ]; do sleep 0.02; done; exec tail -c 1"}, Stdin: true}
	first := c.launch(ctx, t, s)
	for range 2 {
		send(t, first, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: make([]byte, 300_000)}}})
	}
	drop()
	again := c.launch(t.Context(), t, s)
	send(t, again, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("x"), Close: true}}})
	if _, err := c.write(t, "go", "", nil); err != nil {
		t.Fatal(err)
	}
	if r, err := follow(again); err != nil || r.out != "x" {
		t.Errorf("%q, %v, %v", r.out, r.ExecExited, err)
	}
}

func TestATerminalIsResized(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"bash", "-c", `trap 'stty size; exit' WINCH; stty size; read line; echo "got $line"`}, Stdin: true,
			Terminal: &sandboxv1.TerminalSize{Rows: 10, Columns: 20},
		})
		m, err := stream.Recv()
		if err != nil || string(m.GetStdout().GetData()) != "10 20\r\n" {
			t.Fatalf("%v, %v", m, err)
		}
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Resize{Resize: &sandboxv1.TerminalSize{Rows: 11, Columns: 21}}})
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("\n")}}})
		r, err := follow(stream)
		if err != nil || !strings.Contains(r.out, "11 21") {
			t.Errorf("%q, %v, %v", r.out, r.ExecExited, err)
		}
	})
}

func TestTheEndOfInputReachesAProgramOnATerminal(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for _, input := range []string{"", "a line\n", "no line", "one\ntwo"} {
			stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{
				Call: c.call(), Argv: []string{"wc", "-c"}, Stdin: true, Timeout: durationpb.New(5 * time.Second),
				Terminal: &sandboxv1.TerminalSize{Rows: 10, Columns: 80},
			})
			send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte(input), Close: true}}})
			r, err := follow(stream)
			if err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || !strings.Contains(r.out, strconv.Itoa(len(input))) {
				t.Errorf("%q: %q, %v, %v", input, r.out, r.ExecExited, err)
			}
		}
	})
}

func TestAResizeAtTheEndHarmsNothing(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		c.bash(t, "touch {1..10000}")
		for range 10 {
			stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{
				Call: c.call(), Argv: []string{"echo", "text"}, Terminal: &sandboxv1.TerminalSize{Rows: 10, Columns: 20},
			})
			go func() {
				resize := &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Resize{Resize: &sandboxv1.TerminalSize{Rows: 11, Columns: 21}}}
				for {
					if stream.Send(resize) != nil {
						return // it has ended
					}
				}
			}()
			if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || !strings.HasPrefix(r.out, "text") {
				t.Fatalf("%q, %v, %v", r.out, r.ExecExited, err)
			}
		}
	})
}
