package integration

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const going = `
turns:
  - when: ask
    steps: [{tools: [{name: Write, input: {file_path: a}}]}, {tools: [{name: Bash, input: {command: x}}]}, {text: [done]}]
fallback: {steps: [{tools: [{name: Bash, input: {command: x}}]}, {text: [done]}]}
`

// sealing is how a machine takes seals.
type sealing struct {
	leaveSealed bool         // it copies no workspace that is sealed
	refuse      bool         // it seals none
	lift        func() error // decides whether a seal can be lifted; nil: it can
	sealedSteps int          // steps that were begun in a workspace that was sealed
}

func (m *machine) SealWorkspace(_ context.Context, r *sandboxv1.SealWorkspaceRequest) (*sandboxv1.SealWorkspaceResponse, error) {
	if m.refuse {
		return nil, refused(codes.FailedPrecondition, "REFUSED")
	}
	return &sandboxv1.SealWorkspaceResponse{}, m.seal(r.GetCall(), r.GetCall().GetEpoch())
}

func (m *machine) UnsealWorkspace(_ context.Context, r *sandboxv1.UnsealWorkspaceRequest) (*sandboxv1.UnsealWorkspaceResponse, error) {
	if m.lift != nil {
		if err := m.lift(); err != nil {
			return nil, err
		}
	}
	return &sandboxv1.UnsealWorkspaceResponse{}, m.seal(r.GetCall(), 0)
}

func (m *machine) seal(c *commonv1.CallRef, epoch int64) error {
	leave, err := m.within(c.GetSession())
	defer leave()
	if err == nil {
		w := m.has[c.GetSession()]
		w.sealed = epoch
		m.has[c.GetSession()] = w
	}
	return err
}

// changing refuses to change what is sealed, but for a later holder. mu is held.
func (m *machine) changing(c *commonv1.CallRef) error {
	w := m.has[c.GetSession()]
	if w.sealed >= c.GetEpoch() {
		return refused(codes.Unavailable, "WORKSPACE_SEALED")
	}
	w.sealed = 0
	m.has[c.GetSession()] = w
	return nil
}

func (m *machine) RestoreSnapshot(_ context.Context, r *sandboxv1.RestoreSnapshotRequest) (*sandboxv1.RestoreSnapshotResponse, error) {
	leave, err := m.within(r.GetCall().GetSession())
	defer leave()
	if err == nil {
		err = m.changing(r.GetCall())
	}
	return &sandboxv1.RestoreSnapshotResponse{}, err
}

// A workspace that stays is not used before its seal is lifted: its node does not answer for a while.
func TestATurnGoesOnOnceTheSealIsLifted(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, going, withoutExports), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, _ := f.fleet.home(t, s)
	tries := 0
	f.fleet.set(func() {
		home.leaveSealed = true
		home.lift = func() error {
			if tries++; tries < 5 {
				return refused(codes.Unavailable, "DOWN")
			}
			return nil
		}
	})
	turn := f.create(ctx, t, s, "ask")
	asked := f.waitForAsk(ctx, t, s)
	f.fleet.drained(ctx, t, home)
	f.approve(t, s, asked)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ends %v", end)
	}
	f.fleet.set(func() {
		if home.sealedSteps > 0 || home.has[s].sealed > 0 {
			t.Errorf("%d steps began in a sealed workspace; in the end it is %+v", home.sealedSteps, home.has[s])
		}
	})
}

// A move of a session that rests fails, and leaves the seal to who rewinds the session next.
func TestARewindLiftsASealThatStayedBehind(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing, withoutExports), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, _ := f.fleet.home(t, s)
	begun, goOn := make(chan struct{}), make(chan struct{})
	tries := 0
	f.fleet.set(func() {
		home.leaveSealed = true
		home.lift = func() error {
			if tries++; tries > 1 {
				return nil
			}
			close(begun)
			<-goOn
			return refused(codes.Unavailable, "DOWN")
		}
	})
	f.fleet.drained(ctx, t, home)
	<-begun
	done := make(chan error, 1)
	go func() {
		_, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: f.checkpoints(ctx, t, s)[0].Name})
		done <- err
	}()
	until(ctx, t, func() (*sessionv1.GetSessionResponse, error) {
		return f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	},
		func(r *sessionv1.GetSessionResponse) bool { return r.GetSession().GetRewinding() })
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("the rewind: %v", err)
	}
}

// The move of an idle session fails, and its workspace stays unused.
func TestASealDoesNotStayBehindAtRest(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing, withoutExports), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, _ := f.fleet.home(t, s)
	var tries atomic.Int32
	f.fleet.set(func() {
		home.leaveSealed = true
		home.lift = func() error {
			if tries.Add(1) < 3 {
				return refused(codes.Unavailable, "DOWN")
			}
			return nil
		}
	})
	f.fleet.drained(ctx, t, home)
	until(ctx, t, func() (lifted bool, _ error) {
		f.fleet.set(func() { lifted = tries.Load() >= 3 && home.has[s].sealed == 0 })
		return lifted, nil
	}, func(lifted bool) bool { return lifted })
}

// What was copied for a move that fails is not kept.
func TestAMoveThatFailsLeavesNoCopies(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing, withoutExports), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, _ := f.fleet.home(t, s)
	f.fleet.set(func() { home.refuse = true })
	f.fleet.drained(ctx, t, home)
	for range 3 {
		f.turn(ctx, t, s, "work")
	}
	f.fleet.set(func() {
		for _, id := range home.has[s].snapshots {
			if strings.Contains(id, ".leave.") {
				t.Errorf("%s is still there", id)
			}
		}
	})
}
