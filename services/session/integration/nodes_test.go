package integration

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const placing = `
turns:
  - when: ask
    steps: [{tools: [{name: Write, input: {file_path: a}}]}, {text: [never]}]
  - when: read
    steps: [{text: [read]}]
fallback: {steps: [{tools: [{name: Bash, input: {command: x}}]}, {text: [done]}]}
`

// movedOf is what a turn tells of a move; nil if there was none.
func movedOf(events []*sessionv1.Event) *sessionv1.WorkspaceMoved {
	for _, e := range events {
		if m := e.GetWorkspaceMoved(); m != nil {
			return m
		}
	}
	return nil
}

func (f *fixture) addRepository(ctx context.Context, s string) error {
	_, err := sessionv1.NewRepositoryServiceClient(f.conn).AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/app.git"})
	return err
}

// The node comes back under its name with an empty disk, and nothing was ever exported.
func TestWhoeverMadeAWorkspaceTheNextOneAsksForItAndMakesNoOther(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(ctx context.Context, t *testing.T, f *fixture) string{
		"a turn": func(ctx context.Context, t *testing.T, f *fixture) string {
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "work")
			return s
		},
		"a request for a repository": func(ctx context.Context, t *testing.T, f *fixture) string {
			s := f.session(ctx, t)
			if err := f.addRepository(ctx, s); err != nil {
				t.Fatal(err)
			}
			return s
		},
		"a checkpoint": func(ctx context.Context, t *testing.T, f *fixture) string {
			s := f.session(ctx, t)
			if _, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s}); err != nil {
				t.Fatal(err)
			}
			f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetCheckpointCreated() != nil })
			return s
		},
		"a fork": func(ctx context.Context, t *testing.T, f *fixture) string {
			from := f.session(ctx, t)
			f.turn(ctx, t, from, "work")
			made, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: from})
			if err != nil {
				t.Fatal(err)
			}
			return made.Session.Name
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := startFleet(t, placing, withoutExports), deadline(t)
			s := begin(ctx, t, f)
			if p := f.fleet.place(ctx, t, s); !p.Made {
				t.Fatalf("the place is %+v", p)
			}
			home, _ := f.fleet.home(t, s)
			f.fleet.set(func() {
				delete(home.has, s)
				home.wanted = nil
			})
			if err := f.addRepository(ctx, s); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST) {
				t.Errorf("adding a repository: %v", err)
			}
			if _, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST) {
				t.Errorf("a fork: %v", err)
			}
			m := movedOf(f.turn(ctx, t, s, "work"))
			if m == nil {
				t.Fatal("the turn works in an empty workspace, and does not know")
			}
			if m.FromNode != home.name || m.ToNode != home.name || !m.Empty || m.Cause != sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST ||
				!strings.Contains(m.Message, "the machine that held the workspace has lost it") {
				t.Errorf("it is told %v", m)
			}
			if p := f.fleet.place(ctx, t, s); !p.Made || p.Restore || p.Generation != 2 || p.Left != (store.Left{}) {
				t.Errorf("in the end the place is %+v", p)
			}
			if m := movedOf(f.turn(ctx, t, s, "work")); m != nil {
				t.Errorf("it moves again: %v", m)
			}
		})
	}
}

// TestALostNodeIsToldByWhicheverTurnBringsTheFiles lets the turn fail that leaves the node.
func TestALostNodeIsToldByWhicheverTurnBringsTheFiles(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	noted := f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" }).Export
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() {
		f.fleet.objects[s] = append(f.fleet.objects[s], "later")
		home.down, other.refusing = true, true
	})
	f.fleet.untilNode(ctx, t, home, func(n *sessionv1.Node) bool { return n.State == sessionv1.NodeState_NODE_STATE_LOST })
	if end := finished(t, f.turn(ctx, t, s, "work")); end.State != sessionv1.TurnState_TURN_STATE_FAILED || !strings.Contains(end.GetError().GetMessage(), "OBJECT_STORE_REFUSES") {
		t.Fatalf("the turn that cannot bring the files ends %v", end)
	}
	if p := f.fleet.place(ctx, t, s); !p.Restore || p.Made || p.Left != (store.Left{Node: home.name, Why: store.NodeLost}) {
		t.Errorf("meanwhile the place is %+v", p)
	}
	f.fleet.set(func() { other.refusing = false })
	m := movedOf(f.turn(ctx, t, s, "work"))
	if m.GetFromNode() != home.name || m.GetCause() != sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST ||
		!strings.HasSuffix(m.GetRestoredTurn(), noted.Turn) || !strings.Contains(m.GetMessage(), "the machine that held the workspace is lost") {
		t.Errorf("the next turn tells %v", m)
	}
	f.fleet.set(func() {
		if got := other.imports[len(other.imports)-1].Snapshot; got != noted.Snapshot {
			t.Errorf("brought %q, noted is %q", got, noted.Snapshot)
		}
	})
}

// A worker holds the session while turns are queued, and what the turns before have done is exported meanwhile.
func TestALostNodeBringsWhatWasExportedLast(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, `
turns:
  - when: first
    steps: [{tools: [{name: Bash, input: {command: x}}]}, {text: [done]}]
fallback: {steps: [{tools: [{name: Bash, input: {command: block}}]}, {text: [done]}]}
`), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "first")
	one := f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" }).Export
	f.create(ctx, t, s, "second")
	second := <-f.peers.blocked
	f.create(ctx, t, s, "third")
	f.peers.release(second)
	<-f.peers.blocked
	two := f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != one.Turn }).Export
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() { home.down = true })
	m := f.untilEvent(t, s, func(e *sessionv1.Event) bool { return e.GetWorkspaceMoved() != nil }).GetWorkspaceMoved()
	f.fleet.set(func() {
		if got := other.imports[len(other.imports)-1].Snapshot; got != two.Snapshot {
			t.Errorf("brought %q, noted last was %q, and before %q", got, two.Snapshot, one.Snapshot)
		}
	})
	if !strings.HasSuffix(m.GetRestoredTurn(), two.Turn) {
		t.Errorf("it is told %v", m)
	}
}

// What was copied for a planned move does not arrive.
func TestThePlaceThatWasLeftKeepsTheFilesUntilTheyHaveArrived(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing, withoutExports), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() { other.refusing = true })
	f.fleet.drained(ctx, t, home)
	f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Restore })
	if end := finished(t, f.turn(ctx, t, s, "work")); end.State != sessionv1.TurnState_TURN_STATE_FAILED {
		t.Fatalf("the turn that cannot bring the files ends %v", end)
	}
	f.fleet.set(func() {
		if _, there := home.has[s]; !there {
			t.Error("they are nowhere any more but in the object store, which refuses")
		}
		other.refusing = false
	})
	f.turn(ctx, t, s, "work")
	until(ctx, t, func() (there bool, _ error) {
		f.fleet.set(func() { _, there = home.has[s] })
		return there, nil
	}, func(there bool) bool { return !there })
}

// The object store is away for as long as a turn waits for what it needs.
func TestATurnDoesNotWaitForAMove(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, going, withoutExports, func(c *session.Config) { c.PeerPatience = time.Hour }), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	home, _ := f.fleet.home(t, s)
	f.fleet.set(func() { home.storeAway = true })
	turn := f.create(ctx, t, s, "ask")
	asked := f.waitForAsk(ctx, t, s)
	f.fleet.drained(ctx, t, home)
	f.approve(t, s, asked)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ends %v", end)
	}
	if m := movedOf(f.log(ctx, t, s)); m != nil {
		t.Errorf("it is told %v", m)
	}
}

// TestAWorkspaceMovesOnFromANodeThatIsLostBeforeItsFilesAreThere loses one node, and then the other.
func TestAWorkspaceMovesOnFromANodeThatIsLostBeforeItsFilesAreThere(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing, func(c *session.Config) { c.PeerPatience = 3 * time.Second }), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	noted := f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" }).Export
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() { home.down, other.refusing = true, true })
	f.fleet.untilNode(ctx, t, home, func(n *sessionv1.Node) bool { return n.State == sessionv1.NodeState_NODE_STATE_LOST })
	finished(t, f.turn(ctx, t, s, "read"))
	f.fleet.set(func() { home.down, other.down = false, true })
	for m, state := range map[*machine]sessionv1.NodeState{home: sessionv1.NodeState_NODE_STATE_READY, other: sessionv1.NodeState_NODE_STATE_LOST} {
		f.fleet.untilNode(ctx, t, m, func(n *sessionv1.Node) bool { return n.State == state })
	}
	m := movedOf(f.turn(ctx, t, s, "read"))
	if m.GetFromNode() != home.name || m.GetToNode() != home.name || m.GetGeneration() != 3 || !strings.HasSuffix(m.GetRestoredTurn(), noted.Turn) {
		t.Errorf("the next turn tells %v", m)
	}
}

// leaveInATurn has a turn leave a node that is drained, and fail to bring the files.
func leaveInATurn(t *testing.T, f *fixture, s string, home *machine) {
	t.Helper()
	ctx := deadline(t)
	f.create(ctx, t, s, "ask")
	asked := f.waitForAsk(ctx, t, s)
	f.fleet.drained(ctx, t, home)
	f.approve(t, s, asked)
	f.untilEvent(t, s, func(e *sessionv1.Event) bool {
		return e.GetTurnFinished().GetState() == sessionv1.TurnState_TURN_STATE_FAILED
	})
}

// leaveAtRest has it leave while no turn runs. The next turn fails, too, which comes after
// all that the move has tried.
func leaveAtRest(t *testing.T, f *fixture, s string, home *machine) {
	t.Helper()
	ctx := deadline(t)
	_, other := f.fleet.home(t, s)
	f.fleet.drained(ctx, t, home)
	until(ctx, t, func() (n int, _ error) { f.fleet.set(func() { n = len(other.imports) }); return n, nil }, func(n int) bool { return n > 0 })
	if end := finished(t, f.turn(ctx, t, s, "read")); end.State != sessionv1.TurnState_TURN_STATE_FAILED {
		t.Fatalf("the turn that cannot bring the files ends %v", end)
	}
}

// TestAPlannedMoveIsToldAsOneByWhicheverTurnEndsIt lets it fail once its place is committed.
func TestAPlannedMoveIsToldAsOneByWhicheverTurnEndsIt(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, f *fixture, s string, home *machine){
		"in a turn": leaveInATurn, "at rest": leaveAtRest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := startFleet(t, placing), deadline(t)
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "work")
			f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" })
			home, other := f.fleet.home(t, s)
			f.fleet.set(func() { other.refusing = true })
			leave(t, f, s, home)
			if p := f.fleet.place(ctx, t, s); !p.Restore || p.Left != (store.Left{Node: home.name, Why: store.Planned}) {
				t.Errorf("meanwhile the place is %+v", p)
			}
			f.restart(t)
			f.fleet.set(func() { other.refusing = false })
			m := movedOf(f.turn(ctx, t, s, "read"))
			if m.GetFromNode() != home.name || m.GetToNode() != other.name || m.GetCause() != sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_PLANNED || m.GetEmpty() || m.GetRestoredTime() == nil ||
				!strings.Contains(m.GetMessage(), "the workspace is on another machine now, with its files as they were at") {
				t.Errorf("the next turn tells %v", m)
			}
			f.fleet.set(func() {
				if got := other.imports[len(other.imports)-1].Snapshot; got != "" {
					t.Errorf("brought %q, and not what was copied for the move", got)
				}
			})
		})
	}
}

// A node that is drained turns out to have lost its disk: the older copy is no planned move.
func TestAWorkspaceThatIsGoneWhenItsNodeIsDrainedIsToldToBeLost(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" })
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() { delete(home.has, s) })
	f.fleet.drained(ctx, t, home)
	f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool {
		return p.Node == other.name && p.Restore && p.Left == store.Left{Node: home.name, Why: store.DiskLost}
	})
	m := movedOf(f.turn(ctx, t, s, "read"))
	if m.GetFromNode() != home.name || m.GetToNode() != other.name || m.GetCause() != sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST ||
		!strings.Contains(m.GetMessage(), "has lost it. The workspace was restored from its last copy") {
		t.Errorf("the next turn tells %v", m)
	}
}

// What a turn did is not exported before the workspace moves; then the next node is lost.
func TestWhatAMoveCopiedIsTheLastCopyUntilTheNextExport(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" })
	home, other := f.fleet.home(t, s)
	f.fleet.drained(ctx, t, home)
	arrived := f.untilEvent(t, s, func(e *sessionv1.Event) bool { return e.GetWorkspaceMoved() != nil }).GetWorkspaceMoved()
	if arrived.RestoredTime == nil || arrived.RestoredTurn != "" {
		t.Errorf("the move is told as %v", arrived)
	}
	copied := ""
	f.fleet.set(func() {
		kept := f.fleet.objects[s]
		copied = kept[len(kept)-1]
	})
	if _, err := f.fleet.DrainNode(ctx, &sessionv1.DrainNodeRequest{Node: home.name}); err != nil {
		t.Fatal(err)
	}
	f.fleet.untilNode(ctx, t, home, func(n *sessionv1.Node) bool { return !n.Draining })
	f.fleet.set(func() { other.down = true })
	f.fleet.untilNode(ctx, t, other, func(n *sessionv1.Node) bool { return n.State == sessionv1.NodeState_NODE_STATE_LOST })
	m := movedOf(f.turn(ctx, t, s, "read"))
	if m.GetRestoredTurn() == "" || !strings.Contains(m.GetMessage(), "which has everything up to your last answer") {
		t.Errorf("the next turn tells %v", m)
	}
	f.fleet.set(func() {
		if got := home.imports[len(home.imports)-1].Snapshot; got != copied {
			t.Errorf("brought %q, copied for the move was %q", got, copied)
		}
	})
}

// A node that is drained dies as a turn is about to leave it.
func TestANodeThatIsLostDuringAPlannedMoveIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, going), deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "work")
	f.fleet.untilPlace(ctx, t, s, func(p store.Place) bool { return p.Export.Turn != "" })
	home, other := f.fleet.home(t, s)
	turn := f.create(ctx, t, s, "ask")
	asked := f.waitForAsk(ctx, t, s)
	f.fleet.set(func() { home.dies = true })
	f.fleet.drained(ctx, t, home)
	f.approve(t, s, asked)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ends %v", end)
	}
	m := movedOf(f.log(ctx, t, s))
	if m.GetToNode() != other.name || m.GetCause() != sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST || m.GetRestoredTurn() == "" {
		t.Errorf("it is told %v", m)
	}
}

// A node that is drained turns out to have lost its disk as a turn is about to leave it.
func TestATurnThatWasToLeaveAnEmptyDiskIsToldBeforeTheModelIsAsked(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, going, withoutExports), deadline(t)
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "ask")
	asked := f.waitForAsk(ctx, t, s)
	home, _ := f.fleet.home(t, s)
	f.fleet.set(func() { home.forgets = true })
	f.fleet.drained(ctx, t, home)
	f.approve(t, s, asked)
	f.waitForEnd(ctx, t, turn.Name)
	log := f.log(ctx, t, s)
	for _, e := range log[slices.IndexFunc(log, func(e *sessionv1.Event) bool { return e.GetToolCallFinished() != nil }):] {
		if e.GetWorkspaceMoved() != nil {
			return
		}
		if e.GetStepStarted() != nil {
			t.Fatal("the model is asked, and was not told")
		}
	}
	t.Error("nothing is told")
}

// The place is another one by the time that a request has made the workspace in it.
func TestAWorkspaceThatIsMadeInAPlaceThatWasLeftGoesAgain(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing), deadline(t)
	s := f.session(ctx, t)
	f.fleet.set(func() {
		for _, m := range f.fleet.nodes {
			m.made = func() {
				if err := f.fleet.store.ForgetPlace(ctx, store.Key{Tenant: principal.Default().Tenant, Session: strings.TrimPrefix(s, "sessions/")}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err := f.addRepository(ctx, s); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST) {
		t.Errorf("adding a repository: %v", err)
	}
	until(ctx, t, func() (left int, _ error) {
		f.fleet.set(func() { left = len(f.fleet.nodes[0].has) + len(f.fleet.nodes[1].has) })
		return left, nil
	}, func(left int) bool { return left == 0 })
}

// The transcript alone is more than goes into one message.
func TestAnExportIsRefusedBeforeItsFirstByteWhileTheFilesAreToBeRestored(t *testing.T) {
	t.Parallel()
	f, ctx := startFleet(t, placing), deadline(t)
	s := f.session(ctx, t)
	long := make([]byte, 450<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(long)
	f.turn(ctx, t, s, hex.EncodeToString(long))
	home, other := f.fleet.home(t, s)
	f.fleet.set(func() { home.down, other.refusing = true, true })
	f.fleet.untilNode(ctx, t, home, func(n *sessionv1.Node) bool { return n.State == sessionv1.NodeState_NODE_STATE_LOST })
	finished(t, f.turn(ctx, t, s, "work"))
	stream, err := f.ExportSession(ctx, &sessionv1.ExportSessionRequest{Name: s, Format: archive})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := stream.Recv(); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST) {
		t.Errorf("%d bytes come, and %v", len(first.GetData()), err)
	}
}
