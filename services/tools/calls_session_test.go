package tools

import (
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func TestEpoch(t *testing.T) {
	f := newFixture(t, nil)
	q := bashCall("c1", "out x")
	q.Call.Epoch = 5
	f.must(q, outcomeOK)
	f.refused(bashCall("c2", "out x"), "STALE_EPOCH")
	q.Call.Epoch = 4
	f.refused(q, "STALE_EPOCH")
	if _, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("c1")}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
		t.Errorf("got %v", err)
	}
	q = bashCall("c3", "out x")
	q.Call.Epoch = 6
	f.sandbox.SeeEpoch(session, 7)
	f.refused(q, "STALE_EPOCH")
	q.Call.Epoch = 7
	f.must(q, outcomeOK)
}

func TestATakeoverIsRemembered(t *testing.T) {
	f := newFixture(t, nil)
	stream := f.open(t.Context(), bashCall("c1", "out x\nwait g"))
	fence := func(epoch int64) error {
		c := ref("fence")
		c.Epoch = epoch
		_, err := f.calls.FenceSession(t.Context(), &toolsv1.FenceSessionRequest{Call: c})
		return err
	}
	for _, epoch := range []int64{3, 3} {
		if err := fence(epoch); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence(2); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
		t.Errorf("an older takeover: %v", err)
	}
	f.refused(bashCall("c2", "out x"), "STALE_EPOCH")
	f.refused(bashCall("c1", "out x\nwait g"), "STALE_EPOCH")
	f.sandbox.Release("g")
	if a, err := drain(stream); err != nil || a.result.GetOutcome() != outcomeOK {
		t.Errorf("the call that ran ended %+v, %v", a, err)
	}
	f.stop()
	f.start()
	f.refused(bashCall("c2", "out x"), "STALE_EPOCH")
	if n := f.sandbox.Starts("c2"); n > 0 {
		t.Errorf("the refused call was made %d times", n)
	}
	other := bashCall("c3", "out x")
	other.Call.Session = "sessions/s2"
	f.must(other, outcomeOK)
	next := bashCall("c2", "out x")
	next.Call.Epoch = 3
	f.must(next, outcomeOK)
}

func TestTenantsDoNotMeet(t *testing.T) {
	f := newFixture(t, nil)
	f.must(bashCall("c1", "out mine"), outcomeOK)
	other := principal.With(t.Context(), principal.Service("other", "u"))
	stream, err := f.calls.CallTool(other, bashCall("c1", "out theirs"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := drain(stream); err != nil || a.text() != "theirs" {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := f.calls.DeleteSessionCalls(other, &toolsv1.DeleteSessionCallsRequest{Session: session}); err != nil {
		t.Fatal(err)
	}
	if a := f.must(bashCall("c1", "out mine"), outcomeOK); a.text() != "mine" {
		t.Errorf("got %q", a.text())
	}
}

func TestADeletedSessionIsForgottenAndStopped(t *testing.T) {
	f := newFixture(t, nil)
	stream := f.open(t.Context(), bashCall("c1", "out x\nwait never"))
	for range 2 {
		if _, err := f.calls.DeleteSessionCalls(t.Context(), &toolsv1.DeleteSessionCallsRequest{Session: session}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := drain(stream); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
		t.Errorf("the stream ended with %v", err)
	}
	f.refused(bashCall("c2", "out x"), "STALE_EPOCH")
}

func TestCallsOfASessionWaitForEachOther(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MaxSessionCalls = 1 })
	first := f.open(t.Context(), bashCall("c1", "wait g"))
	second, err := f.calls.CallTool(t.Context(), bashCall("c2", "out x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Header(); err != nil {
		t.Fatal(err)
	}
	other := bashCall("c3", "out x")
	other.Call.Session = "sessions/s2"
	f.must(other, outcomeOK)
	f.awaitStart("c3")
	if f.sandbox.Starts("c2") != 0 {
		t.Error("the second call did not wait")
	}
	f.sandbox.Release("g")
	if _, err := drain(first); err != nil {
		t.Fatal(err)
	}
	if a, err := drain(second); err != nil || a.result.GetOutcome() != outcomeOK {
		t.Errorf("got %+v, %v", a, err)
	}
}
