package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

const (
	outcomeOK        = toolsv1.CallOutcome_CALL_OUTCOME_OK
	outcomeError     = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
	outcomeDenied    = toolsv1.CallOutcome_CALL_OUTCOME_DENIED
	outcomeRefused   = toolsv1.CallOutcome_CALL_OUTCOME_REFUSED
	outcomeCancelled = toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED
	outcomeUnknown   = toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN
)

func TestACallRunsOnceAndIsRepeatedFromTheJournal(t *testing.T) {
	f := newFixture(t, nil)
	first := f.must(bashCall("c1", "out hello\nerr oops"), outcomeOK)
	if first.decision.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW || first.decision.GetRule() != "allow Bash" {
		t.Errorf("got decision %v", first.decision)
	}
	if first.output != "hello\noops\n" || first.text() != "hello\noops" {
		t.Errorf("got output %q and text %q", first.output, first.text())
	}
	again := f.must(bashCall("c1", "out hello\nerr oops"), outcomeOK)
	if again.pieces != 1 {
		t.Errorf("a repeated call brought %d pieces, want its result only", again.pieces)
	}
	if diff := cmp.Diff(first.result, again.result, protocmp.Transform()); diff != "" {
		t.Errorf("the recorded result differs (-first +again):\n%s", diff)
	}
	if n := f.sandbox.Starts("c1"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}
	if diff := cmp.Diff([]string{"c1"}, f.sandbox.Acknowledged()); diff != "" {
		t.Errorf("acknowledged (-want +got):\n%s", diff)
	}
}

func TestWhatAModelCanMendIsAResult(t *testing.T) {
	f := newFixture(t, nil)
	narrow := ask("c-narrow", "Bash", `{"command":"x"}`)
	narrow.AllowedTools = []string{"Read"}
	cases := []struct {
		name string
		q    *toolsv1.CallToolRequest
		want string
	}{
		{"an unknown tool", ask("c1", "Nope", `{}`), `There is no tool "Nope"`},
		{"a tool that the agent may not use", narrow, "It has: Read."},
		{"no JSON", ask("c2", "Read", `{"file_path":`), "not valid JSON"},
		{"JSON with more behind it", ask("c3", "Read", `{"file_path":"x"} x`), "something follows"},
		{"no object", ask("c4", "Read", `[]`), "not a JSON object"},
		{"null", ask("c5", "Read", `null`), "missing property 'file_path'"},
		{"nothing where something is required", ask("c6", "Read", ``), "missing property 'file_path'"},
		{"a wrong type", ask("c7", "Read", `{"file_path":1}`), "file_path: got number, want string"},
		{"an unknown parameter", ask("c8", "Bash", `{"command":"x","in_background":true}`), "'in_background' not allowed"},
		{"a name twice", ask("c9", "Bash", `{"command":"ls","command":"rm"}`), "occurs twice"},
		{"a time-out above the limit", ask("c10", "Bash", `{"command":"x","timeout":600001}`), "timeout: maximum"},
		{"a number without end", ask("c11", "Bash", `{"command":"x","timeout":1e999999999}`), "is beyond 1000"},
		{"deep nesting", ask("c12", "Bash", strings.Repeat("[", 100_000)), "nested more than 128 deep"},
		{"a NUL in a command", ask("c13", "Bash", `{"command":"a\u0000b"}`), "NUL"},
		{"a NUL in a path", ask("c14", "Read", `{"file_path":"a\u0000b"}`), "NUL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				if got := f.must(c.q, outcomeError); !strings.Contains(got.text(), c.want) {
					t.Errorf("got %q, want %q in it", got.text(), c.want)
				}
			}
		})
	}
}

func TestNumbersBeyondEveryBoundAreCut(t *testing.T) {
	f := newFixture(t, nil)
	f.must(ask("c0", "Write", `{"file_path":"a","content":"x\n"}`), outcomeOK)
	for i, arguments := range []string{`"offset":1e400`, `"limit":1e400`, `"offset":1.0`, `"limit":123456789012345678901234567890`} {
		f.must(ask(fmt.Sprint("r", i), "Read", `{"file_path":"a",`+arguments+`}`), outcomeOK)
	}
	for i, arguments := range []string{`"head_limit":1e400`, `"-A":1e400,"-B":9007199254740993`, `"-C":1.0`} {
		f.must(ask(fmt.Sprint("g", i), "Grep", `{"pattern":"x","output_mode":"content",`+arguments+`}`), outcomeOK)
	}
}

func TestTheSameIDForAnotherCallIsRefused(t *testing.T) {
	f := newFixture(t, nil)
	f.must(bashCall("c1", "out a"), outcomeOK)
	f.refused(bashCall("c1", "out b"), "CALL_ID_REUSED")
	f.refused(ask("c1", "Read", `{"command":"out a"}`), "CALL_ID_REUSED")
	other := bashCall("c1", "out a")
	other.Call.Session = "sessions/s2"
	f.refused(other, "CALL_ID_REUSED")
}

func TestDroppingTheStreamDoesNotStopTheCall(t *testing.T) {
	f := newFixture(t, nil)
	q := bashCall("c1", "out before\nwait g\nout after")
	ctx, drop := context.WithCancel(t.Context())
	f.open(ctx, q)
	drop()
	second, err := f.calls.CallTool(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	m, err := second.Recv()
	if err != nil || string(m.GetOutput().GetData()) != "before\n" {
		t.Fatalf("the attached stream began with %v, %v, want the output so far", m, err)
	}
	f.sandbox.Release("g")
	a, err := drain(second)
	if err != nil || a.output != "after\n" || a.text() != "before\nafter" {
		t.Fatalf("got %+v, %v", a, err)
	}
	if n := f.sandbox.Starts("c1"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}
}

func TestManyCallersOfOneCallShareOneRun(t *testing.T) {
	f := newFixture(t, nil)
	q := bashCall("c1", "out x\nwait g\nout y")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			// Who comes when the call has ended gets its result only.
			a := f.must(q, outcomeOK)
			if a.text() != "x\ny" || a.output != "x\ny\n" && a.pieces > 1 {
				t.Errorf("got %q in %d pieces", a.output, a.pieces)
			}
		})
	}
	f.awaitStart("c1")
	f.sandbox.Release("g")
	wg.Wait()
	if n := f.sandbox.Starts("c1"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}
}

func TestCancel(t *testing.T) {
	cancel := func(f *fixture, id string) (*toolsv1.CallResult, error) {
		a, err := f.calls.CancelCall(f.t.Context(), &toolsv1.CancelCallRequest{Call: ref(id)})
		return a.GetResult(), err
	}
	t.Run("a running call is stopped and told as cancelled", func(t *testing.T) {
		f := newFixture(t, nil)
		q := bashCall("c1", "out x\nwait never")
		stream := f.open(t.Context(), q)
		got, err := cancel(f, "c1")
		if err != nil || got.GetOutcome() != outcomeCancelled {
			t.Fatalf("got %v, %v", got, err)
		}
		if a, err := drain(stream); err != nil || a.result.GetOutcome() != outcomeCancelled || !strings.Contains(a.text(), "x") {
			t.Errorf("the stream ended with %v, %v", a.result, err)
		}
		f.refused(q, "CALL_CANCELLED")
		again, err := cancel(f, "c1")
		if diff := cmp.Diff(got, again, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("again: %v (-first +again):\n%s", err, diff)
		}
	})
	t.Run("a call that was never made cannot be made any more", func(t *testing.T) {
		f := newFixture(t, nil)
		if got, err := cancel(f, "c1"); err != nil || got.GetOutcome() != outcomeCancelled {
			t.Fatalf("got %v, %v", got, err)
		}
		f.refused(bashCall("c1", "out x"), "CALL_CANCELLED")
		if f.sandbox.Starts("c1") != 0 {
			t.Error("it ran")
		}
	})
	t.Run("a finished call keeps its result", func(t *testing.T) {
		f := newFixture(t, nil)
		f.must(bashCall("c1", "out x"), outcomeOK)
		if got, err := cancel(f, "c1"); err != nil || got.GetOutcome() != outcomeOK {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	t.Run("a call that a process left behind is stopped in the sandbox", func(t *testing.T) {
		f := newFixture(t, nil)
		q := bashCall("c1", "out x\nwait never")
		f.open(t.Context(), q)
		f.stop()
		f.start()
		if got, err := cancel(f, "c1"); err != nil || got.GetOutcome() != outcomeCancelled {
			t.Fatalf("got %v, %v", got, err)
		}
		f.refused(q, "CALL_CANCELLED")
	})
	t.Run("a change that a process left behind is not made later", func(t *testing.T) {
		f := newFixture(t, nil)
		q := ask("c1", "Write", `{"file_path":"a","content":"x"}`)
		f.sandbox.Fail(apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "gone"))
		begun, err := f.calls.CallTool(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := drain(begun); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_SANDBOX_UNAVAILABLE) {
			t.Fatalf("got %v, %v", a, err)
		}
		if got, err := cancel(f, "c1"); err != nil || got.GetOutcome() != outcomeCancelled {
			t.Fatalf("got %v, %v", got, err)
		}
		late := &sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Start{Start: &sandboxv1.WriteFileStart{Call: ref("c1"), Path: "a"}}}
		stream, err := sandboxv1.NewFileServiceClient(f.conn).WriteFile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(late); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.CloseAndRecv(); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED) {
			t.Errorf("a request that was on its way changed the file: %v, %v", got, err)
		}
	})
	t.Run("while the sandbox cannot be reached nothing is told as stopped", func(t *testing.T) {
		f := newFixture(t, nil)
		q := bashCall("c1", "out x\nwait g")
		f.open(t.Context(), q)
		f.sandbox.Fail(apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "gone"))
		if got, err := cancel(f, "c1"); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_SANDBOX_UNAVAILABLE) {
			t.Fatalf("got %v, %v", got, err)
		}
		f.sandbox.Release("g")
		f.must(q, outcomeOK)
	})
}

func TestRestart(t *testing.T) {
	t.Run("a running call is found again by its id", func(t *testing.T) {
		f := newFixture(t, nil)
		q := bashCall("c1", "out before\nwait g\nout after")
		stream := f.open(t.Context(), q)
		f.stop()
		if _, err := drain(stream); apierr.Reason(err) != apierr.ReasonDraining {
			t.Errorf("the stream ended with %v", err)
		}
		f.start()
		f.sandbox.Release("g")
		if a := f.must(q, outcomeOK); a.text() != "before\nafter" {
			t.Errorf("got %q", a.text())
		}
		if n := f.sandbox.Starts("c1"); n != 1 {
			t.Errorf("the command was started %d times", n)
		}
	})
	t.Run("a call that the sandbox lost is unknown", func(t *testing.T) {
		f := newFixture(t, nil)
		q := bashCall("c1", "out x\nwait never")
		f.open(t.Context(), q)
		f.stop()
		f.sandbox.Lose("c1")
		f.start()
		if a := f.must(q, outcomeUnknown); !strings.Contains(a.text(), "It may have taken effect: check before repeating it") {
			t.Errorf("got %q", a.text())
		}
		f.must(q, outcomeUnknown)
	})
	t.Run("a change of a file is made once", func(t *testing.T) {
		f := newFixture(t, nil)
		q := ask("c1", "Write", `{"file_path":"a.txt","content":"x"}`)
		f.must(q, outcomeOK)
		f.stop()
		f.start()
		if a := f.must(q, outcomeOK); !strings.Contains(a.text(), "/workspace/a.txt") {
			t.Errorf("got %q", a.text())
		}
		if n := f.sandbox.Changes("c1"); n != 1 {
			t.Errorf("the file was changed %d times", n)
		}
	})
}

func TestSandboxOutOfReach(t *testing.T) {
	f := newFixture(t, nil)
	gone := apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "gone")
	q := ask("c1", "Read", `{"file_path":"a"}`)
	f.sandbox.Put(session, "a", "text\n")
	f.sandbox.Fail(gone)
	_, err := f.call(q)
	if !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_SANDBOX_UNAVAILABLE) || apierr.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	if retry, ok := apierr.Detail[*errdetails.RetryInfo](err); !ok || retry.GetRetryDelay().AsDuration() <= 0 {
		t.Errorf("the error does not say when to try again: %v", err)
	}
	f.must(q, outcomeOK)

	// A command is followed over broken streams.
	f.sandbox.Fail(gone, gone)
	f.must(bashCall("c2", "out x"), outcomeOK)
}

// TestAServerThatIsAwayIsNamed has the sandbox answer as a node of a group does that
// cannot be reached: who asks learns which server has the files, and what to do.
func TestAServerThatIsAwayIsNamed(t *testing.T) {
	f := newFixture(t, quick)
	const says = `the session's files are on the server "other": start it again`
	away := apierr.New(codes.Unavailable, apierr.Domain, node.ReasonNodeAway, says)
	named := func(what string, err error) {
		t.Helper()
		if apierr.Code(err) != codes.Unavailable || apierr.Reason(err) != node.ReasonNodeAway || apierr.Message(err) != says {
			t.Errorf("%s: %v", what, err)
		}
	}
	fails := func(q *toolsv1.CallToolRequest) {
		t.Helper()
		f.sandbox.Fail(away)
		_, err := f.call(q)
		named(q.GetTool(), err)
		f.must(q, outcomeOK)
	}
	f.sandbox.Put(session, "a", "text\n")
	for i, q := range []*toolsv1.CallToolRequest{
		ask("n1", "Read", `{"file_path":"a"}`), ask("n2", "Grep", `{"pattern":"t"}`), ask("n3", "Glob", `{"pattern":"*"}`), ask("n4", "LS", `{}`),
		ask("n5", "Write", `{"file_path":"b","content":"x"}`), ask("n6", "Edit", `{"file_path":"a","old_string":"text","new_string":"x"}`),
	} {
		if fails(q); t.Failed() {
			t.Fatalf("call %d", i)
		}
	}
	f.open(t.Context(), bashCall("n7", "out x\nwait never"))
	f.sandbox.Fail(away)
	_, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("n7")})
	named("CancelCall", err)
	if _, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("n7")}); err != nil {
		t.Error(err)
	}
}

func TestSandboxErrorsThatAreForTheCaller(t *testing.T) {
	f := newFixture(t, nil)
	f.sandbox.Fail(apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION, "moved"))
	f.refused(ask("c1", "Read", `{"file_path":"a"}`), "STALE_GENERATION")
}

// TestATakeoverIsRemembered tells of a takeover while a call runs: the call goes on,
// and nothing else comes of the old holder, also after a restart.
func TestEndlessOutputIsBounded(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MaxCallOutput = 64 << 10 })
	a := f.must(bashCall("c1", "flood 5000000"), outcomeOK)
	if len(a.output) > 64<<10 || len(a.progress) != 1 {
		t.Errorf("%d bytes were shown, and %q told", len(a.output), a.progress)
	}
	if !strings.Contains(a.text(), "[4970000 characters cut]") || len(a.text()) > 30100 {
		t.Errorf("the model sees %d bytes: %.80q…", len(a.text()), a.text())
	}
}

// A model can leave a name out, which it is told as it is told of a wrong one.
func TestACallWithoutAToolsNameIsAResult(t *testing.T) {
	f := newFixture(t, nil)
	q := bashCall("c1", "out x")
	q.Tool = ""
	f.must(q, toolsv1.CallOutcome_CALL_OUTCOME_ERROR)
}

func TestRequestsAreValidated(t *testing.T) {
	f := newFixture(t, nil)
	for name, change := range map[string]func(*toolsv1.CallToolRequest){
		"no call":       func(q *toolsv1.CallToolRequest) { q.Call = nil },
		"no epoch":      func(q *toolsv1.CallToolRequest) { q.Call.Epoch = 0 },
		"a bad call id": func(q *toolsv1.CallToolRequest) { q.Call.CallId = "../x" },
		"no profile":    func(q *toolsv1.CallToolRequest) { q.Profile = "" },
		"no digest":     func(q *toolsv1.CallToolRequest) { q.Approval = &toolsv1.Approval{Approved: true} },
	} {
		t.Run(name, func(t *testing.T) {
			q := bashCall("c1", "out x")
			change(q)
			if _, err := f.call(q); apierr.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v", err)
			}
		})
	}
}
