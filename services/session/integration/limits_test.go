package integration

import (
	"context"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	sessionlimits "github.com/fairlead/fairlead/services/session/internal/limits"
)

const greets = "fallback: {steps: [{text: [hello]}]}"

// ann is a user, whose requests count.
func ann(t *testing.T) context.Context { return as(t.Context(), "ann", principal.RoleUser) }

// Twenty clients of two replicas ask for more than they may. Together they get what one limit allows.
func TestTwoReplicasTogetherKeepARate(t *testing.T) {
	t.Parallel()
	const perSecond, clients, measured = 50, 20, 3 * time.Second
	url := pgtest.New(t)
	replicas := make([]*fixture, 2)
	for i := range replicas {
		replicas[i] = start(t, greets, func(c *session.Config) {
			c.DatabaseURL, c.Use.User.Rate = config.Secret(url), perSecond
		})
	}
	ctx, cancel := context.WithCancel(ann(t))
	defer cancel()
	var admitted atomic.Int64
	var refused sync.Once
	over := make(chan struct{}) // the burst is spent
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				_, err := replicas[i%2].ListSessions(ctx, &sessionv1.ListSessionsRequest{})
				if err == nil {
					admitted.Add(1)
					continue
				}
				if ctx.Err() != nil {
					return
				}
				wait, ok := apierr.Detail[*errdetails.RetryInfo](err)
				if apierr.Code(err) != codes.ResourceExhausted || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) || !ok {
					t.Errorf("a request: %v", err)
					return
				}
				refused.Do(func() { close(over) })
				select {
				case <-time.After(wait.GetRetryDelay().AsDuration()):
				case <-ctx.Done():
				}
			}
		})
	}
	<-over
	from, before := time.Now(), admitted.Load()
	<-time.After(measured)
	got, took := float64(admitted.Load()-before), time.Since(from)
	cancel()
	all.Wait()
	want := perSecond * took.Seconds()
	t.Logf("%d clients got %v requests in %s, %v are allowed", clients, got, took, math.Round(want))
	// A busy machine serves fewer. Half of them would mean that only one replica has tokens.
	if got > 1.05*want || got < want/2 {
		t.Errorf("%v requests in %s, want %v", got, took, want)
	}
}

func TestLimitsHoldForEveryKindOfCall(t *testing.T) {
	t.Parallel()
	f := start(t, greets, func(c *session.Config) {
		c.Use.User = sessionlimits.Set{KeySet: sessionlimits.KeySet{Streams: 1, UploadBytes: 1 << 10}, Turns: 1, Sessions: 2}
	})
	ctx := ann(t)
	reached := func(what string, err error) {
		t.Helper()
		quota, _ := apierr.Detail[*errdetails.QuotaFailure](err)
		if apierr.Code(err) != codes.ResourceExhausted || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) || len(quota.GetViolations()) != 1 || quota.GetViolations()[0].GetSubject() != "users/ann" {
			t.Errorf("%s: %v", what, err)
		}
	}
	one, two := f.session(ctx, t), f.session(ctx, t)
	_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
	reached("a third session", err)
	_, err = f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: one})
	reached("a fork", err)

	open, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: one})
	if err == nil {
		_, err = open.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: two})
	if err == nil {
		_, err = second.Recv()
	}
	reached("a second stream", err)

	// The second turn waits behind the first, which waits for a client's tool.
	tool := &sessionv1.ClientTool{Name: "temperature", InputSchemaJson: "{}"}
	g := start(t, "fallback: {steps: [{tools: [{name: temperature, input: {}}]}, {text: [warm]}]}", func(c *session.Config) { c.Use.User.Turns = 1 })
	there := g.session(ctx, t)
	if _, err := g.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: there, Text: "x", ClientTools: []*sessionv1.ClientTool{tool}}); err != nil {
		t.Fatal(err)
	}
	_, err = g.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: there, Text: "y"})
	reached("a second turn", err)
	for _, how := range []sessionv1.OnActive{sessionv1.OnActive_ON_ACTIVE_STEER, sessionv1.OnActive_ON_ACTIVE_INTERRUPT} {
		if _, err := g.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: there, Text: "z", OnActive: how}); err != nil {
			t.Errorf("a turn with %s: %v", how, err)
		}
	}
}

func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()
	f := start(t, greets, func(c *session.Config) { c.Use.User.UploadBytes = 1 << 10 })
	st, err := f.ImportSession(ann(t))
	if err != nil {
		t.Fatal(err)
	}
	err = st.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Open{Open: &sessionv1.ImportOpen{}}})
	for range 4 {
		if err != nil {
			break
		}
		err = st.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Data{Data: make([]byte, 512)}})
	}
	if err != nil && err != io.EOF { //nolint:errorlint // gRPC returns it bare
		t.Fatal(err)
	}
	if _, err := st.CloseAndRecv(); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) {
		t.Errorf("an upload beyond a day's bytes: %v", err)
	}
}
