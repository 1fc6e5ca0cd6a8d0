package builtin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func TestBash(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, script string
		outcome      toolsv1.CallOutcome
		want         string
	}{
		{"both streams come in their order", "out a\nerr b\nout c", ok, "a\nb\nc"},
		{"no output is said", "exit 0", ok, "The command ran and wrote nothing."},
		{"an exit code is told", "err no such file\nexit 2", failing, "Exit code 2\nno such file"},
		{"an exit code alone is told", "exit 1", failing, "Exit code 1"},
		{"a time-out is told with the output so far", "out a\ntimeout", failing, "The command timed out after 2m0s and was killed\na"},
		{"what the sandbox says of its limits is passed on", "oom", failing, "The command was stopped by the sandbox: it wanted more than 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.want("Bash", object(t, map[string]any{"command": c.script}), c.outcome, c.want)
		})
	}
	w.contains("Bash", object(t, map[string]any{"command": strings.Repeat("x", 200_000)}), failing, "Write it to a file")
	w.want("Bash", `{"command":"timeout","timeout":1500}`, failing, "The command timed out after 1.5s and was killed")
	w.contains("Bash", `{"command":"x","timeout":0}`, failing, "timeout: minimum")
}

func TestACommandStoppedAsItIsHandedBackIsNoOperation(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(w.ctx())
	c := tool.Call{
		Session: session, Epoch: 1, Node: "here", ID: "c1", Arguments: []byte(`{"command":"wait never","run_in_background":true}`),
		Seen: func() { cancel(tool.ErrCancelled) },
	}
	r, err := w.tools["Bash"].Runner.Run(ctx, c, &sink{})
	if err != nil {
		t.Fatal(err)
	}
	if r.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED || r.GetOperation() != "" {
		t.Errorf("%v, although the command was killed", r)
	}
}

func TestBashStreamsOutputAndHidesWhatWasSeen(t *testing.T) {
	w := newWorld(t)
	w.sandbox.Release("g")
	out := &sink{}
	args, err := w.tools["Bash"].Arguments(`{"command":"out a\nwait g\nerr b"}`)
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{Session: session, Epoch: 1, Node: "here", ID: "c1", Arguments: args.Raw}
	for i := range 2 {
		c.Resumed = i == 1
		if _, err := w.tools["Bash"].Runner.Run(w.ctx(), c, out); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.output.String(); got != "stdout:a\nstderr:b\nstdout:a\nstderr:b\n" || len(out.progress) != 1 {
		t.Errorf("got %q, %q", got, out.progress)
	}
	if w.sandbox.Starts("c1") != 1 {
		t.Error("the command did not run once")
	}
}

func TestAResumedCommandThatIsGoneIsStartedOnlyWhileItsCallIsOpen(t *testing.T) {
	w := newWorld(t)
	args, err := w.tools["Bash"].Arguments(`{"command":"out a"}`)
	if err != nil {
		t.Fatal(err)
	}
	settled := errors.New("settled")
	c := tool.Call{Session: session, Epoch: 1, Node: "here", ID: "c1", Arguments: args.Raw, Resumed: true, Open: func(context.Context) error { return settled }}
	if r, err := w.tools["Bash"].Runner.Run(w.ctx(), c, &sink{}); !errors.Is(err, settled) || w.sandbox.Starts("c1") != 0 {
		t.Errorf("a settled call: got %v, %v, and %d starts", r, err, w.sandbox.Starts("c1"))
	}
	c.Open = func(context.Context) error { return nil }
	if r, err := w.tools["Bash"].Runner.Run(w.ctx(), c, &sink{}); err != nil || tool.Text(r) != "a" || w.sandbox.Starts("c1") != 1 {
		t.Errorf("an open call: got %v, %v, and %d starts", r, err, w.sandbox.Starts("c1"))
	}
}

func TestACallIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	args, err := w.tools["Bash"].Arguments(`{"command":"out a"}`)
	if err != nil {
		t.Fatal(err)
	}
	gone := apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "gone")
	for name, faults := range map[string][]error{
		"refused":     {gone, gone},
		"interrupted": {sandboxtest.ErrBroken, gone},
	} {
		w.sandbox.Fail(faults...)
		r, err := w.tools["Bash"].Runner.Run(w.ctx(), tool.Call{Session: session, Epoch: 1, Node: "here", ID: name, Arguments: args.Raw}, &sink{})
		if err != nil || tool.Text(r) != "a" || w.sandbox.Starts(name) != 1 {
			t.Errorf("%s: got %v, %v, and %d starts", name, r, err, w.sandbox.Starts(name))
		}
	}
}

func TestALostCommandIsUnknown(t *testing.T) {
	w := newWorld(t)
	args, err := w.tools["Bash"].Arguments(`{"command":"out a\nwait never"}`)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan *tool.Result, 1)
	go func() {
		r, err := w.tools["Bash"].Runner.Run(w.ctx(), tool.Call{Session: session, Epoch: 1, Node: "here", ID: "c1", Arguments: args.Raw}, &sink{})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	<-w.sandbox.Started()
	w.sandbox.Lose("c1")
	r := <-ended
	if got := tool.Text(r); r.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN || !strings.HasPrefix(got, unknownText) {
		t.Errorf("got %v %q", r.GetOutcome(), got)
	}
}
