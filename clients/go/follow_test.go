package fairlead_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	fairlead "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/clienttest"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast is a backoff for tests.
var fast = fairlead.Backoff{First: time.Millisecond, Most: 2 * time.Millisecond, Attempts: 3}

func connect(t *testing.T, s *clienttest.Server) *fairlead.Client {
	t.Helper()
	c, err := fairlead.Connect(s.Address, fairlead.Config{Backoff: fast})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// follow runs a turn and returns the sequence numbers that were seen.
func follow(t *testing.T, c sessionv1.SessionServiceClient, lost *int) ([]int64, error) {
	t.Helper()
	f := fairlead.RunTurn(t.Context(), c, &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"}, fairlead.Options{
		Backoff: fast, Lost: func(error) { *lost++ },
	})
	defer f.Close()
	var seen []int64
	for e := range f.Events() {
		seen = append(seen, e.GetSeq())
	}
	return seen, f.Err()
}

func TestABrokenStreamIsResumed(t *testing.T) {
	for _, c := range []struct {
		name       string
		breakAfter []int
		after      []int64 // of each request
	}{
		{"an unbroken stream asks once", nil, []int64{0}},
		{"it goes on after the last event", []int{3}, []int64{0, 3}},
		{"it goes on as often as it gets further", []int{1, 1, 1, 1, 1}, []int64{0, 1, 2, 3, 4, 5}},
		{"a stream that brings nothing is tried again", []int{2, 0, 0}, []int64{0, 2, 2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE), BreakAfter: c.breakAfter}).Start(t)
			lost := 0
			seen, err := follow(t, connect(t, s).Sessions, &lost)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7}, seen); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			var after []int64
			ids := map[string]bool{}
			for _, m := range s.Requests() {
				r, ok := m.(*sessionv1.RunTurnRequest)
				if !ok {
					t.Fatalf("another request: %v", m)
				}
				after = append(after, r.GetAfterSeq())
				ids[r.GetRequestId()] = true
			}
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Errorf("after_seq (-want +got):\n%s", diff)
			}
			if len(ids) != 1 || ids[""] {
				t.Errorf("request ids %v, want one", ids)
			}
			if lost != len(c.breakAfter) {
				t.Errorf("told %d times of a lost connection", lost)
			}
		})
	}
}

func TestItGivesUpWithoutProgress(t *testing.T) {
	s := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE), BreakAfter: []int{2, 0, 0, 0, 0, 0}}).Start(t)
	lost := 0
	seen, err := follow(t, connect(t, s).Sessions, &lost)
	if status.Code(err) != codes.Unavailable || len(seen) != 2 {
		t.Errorf("saw %v, error %v", seen, err)
	}
	if n := len(s.Requests()); n != 1+fast.Attempts {
		t.Errorf("%d requests, want %d", n, 1+fast.Attempts)
	}
}

func TestClosingEndsAStreamThatIsHeld(t *testing.T) {
	s := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE), Hold: 2}).Start(t)
	f := connect(t, s).Follow(t.Context(), clienttest.Session, 0)
	if e := <-f.Events(); e.GetSeq() != 1 {
		t.Errorf("first event %v", e)
	}
	f.Close()
	f.Close()
	if !errors.Is(f.Err(), context.Canceled) {
		t.Errorf("error %v", f.Err())
	}
}

func TestRetryRepeatsOnlyWhatMaySucceed(t *testing.T) {
	limit := func(wait time.Duration) error {
		s, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	for _, c := range []struct {
		name string
		err  error
		want int           // calls
		took time.Duration // at the least
	}{
		{"a server that is not there is asked again", status.Error(codes.Unavailable, "no"), 1 + fast.Attempts, 0},
		{"a refusal is final", status.Error(codes.InvalidArgument, "no"), 1, 0},
		{"a limit is waited for as the server says", limit(fast.Most), 1 + fast.Attempts, time.Duration(fast.Attempts) * fast.Most},
		{"a limit for longer is final", limit(time.Hour), 1, 0},
		{"a limit without a time is final", status.Error(codes.ResourceExhausted, "no"), 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, began := 0, time.Now()
				err := fairlead.Retry(t.Context(), fast, func() error { calls++; return c.err })
				if status.Code(err) != status.Code(c.err) || calls != c.want || time.Since(began) < c.took {
					t.Errorf("%d calls in %s, error %v", calls, time.Since(began), err)
				}
			})
		})
	}
}
