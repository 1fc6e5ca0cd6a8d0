package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// tenant is the tenant of the measured sessions: the one that programs without
// authentication serve.
const tenant = "default"

// token is the text of one event.
const token = "some word "

// Times has durations in microseconds.
type Times struct {
	Count         int
	P50, P90, P99 float64
}

func timesOf(all []time.Duration) Times {
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) / 1e3 }
	return Times{Count: len(all), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// measureCommit commits one event at a time, as the committer does for a single
// slow stream.
func measureCommit(ctx context.Context, s store.Store, o options) (any, error) {
	leases, err := claimSessions(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	turn := "sessions/" + leases[0].Session + "/turns/t"
	var all []time.Duration
	const warm = 20
	for i := range int64(o.count + warm) {
		w := store.Write{Lease: leases[0], LastSeq: i + 1, Events: []*sessionv1.Event{delta(i+2, turn, 0)}}
		begun := time.Now()
		errs, err := s.Commit(ctx, []store.Write{w})
		if err := errors.Join(append(errs, err)...); err != nil {
			return nil, err
		}
		if i >= warm {
			all = append(all, time.Since(begun))
		}
		// A pause like the one between two tokens, so that caches are as cold as
		// with a slow stream.
		time.Sleep(3 * time.Millisecond) //nolint:forbidigo // the measured stream's own pace
	}
	return timesOf(all), nil
}

func delta(seq int64, turn string, block int32) *sessionv1.Event {
	return &sessionv1.Event{
		FirstSeq: seq, Seq: seq, Time: timestamppb.Now(), Turn: turn, Step: 1,
		Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: block, Text: token}},
	}
}

// claimSessions makes sessions with a turn each and claims them.
func claimSessions(ctx context.Context, s store.Store, n int) ([]store.Lease, error) {
	keys := make([]store.Key, n)
	for i := range keys {
		k := store.Key{Tenant: tenant, Session: id.New()}
		keys[i] = k
		_, err := s.CreateSession(ctx, store.NewSession{
			Key: k, Agent: "agents/bench", AgentRevision: "1",
			Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/bench"}}},
		})
		if err != nil {
			return nil, err
		}
		if err := submitTurn(ctx, s, k); err != nil {
			return nil, err
		}
	}
	leases, err := s.Claim(ctx, store.Claim{Replica: "bench", TTL: time.Hour, Only: keys})
	if err == nil && len(leases) != n {
		err = fmt.Errorf("claimed %d of %d sessions", len(leases), n)
	}
	return leases, err
}

// submitTurn puts a turn into a session's inbox.
func submitTurn(ctx context.Context, s store.Store, k store.Key) error {
	turn := id.New()
	_, err := s.Submit(ctx, store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn, TurnID: turn, User: "bench"},
		Turn: &store.TurnRow{ID: turn, Turn: &sessionv1.Turn{
			Name: "sessions/" + k.Session + "/turns/" + turn, State: sessionv1.TurnState_TURN_STATE_QUEUED,
		}},
	})
	return err
}
