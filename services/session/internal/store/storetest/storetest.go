// Package storetest is the suite that every backend of store passes: what a
// Store answers, in which order and with which errors. A backend's test only
// opens empty stores for it.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Run runs the suite. open returns a new empty store and closes it at the
// test's end. The suite closes some stores itself, so Close must be repeatable.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, topic := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) store.Store)
	}{
		{"sessions", testSessions},
		{"deletion", testDeletion},
		{"subagents", testChildren},
		{"request ids", testRequestIDs},
		{"tenants", testTenants},
		{"agent revisions", testAgentRevisions},
		{"agents", testAgents},
		{"changes of sessions", testSessionChanges},
		{"submit", testSubmit},
		{"taking", testTaking},
		{"turns", testTurns},
		{"answers", testAnswers},
		{"what waits for people", testPending},
		{"claim", testClaim},
		{"sessions that may bring their holders down", testSuspects},
		{"fencing", testFencing},
		{"a fence that is due", testFenceDue},
		{"commit", testCommit},
		{"budgets", testBudgets},
		{"spending", testSpending},
		{"events", testEvents},
		{"folding", testFold},
		{"messages", testMessages},
		{"search", testSearch},
		{"imports", testImport},
		{"many events", testManyEvents},
		{"ids of deleted sessions", testDeleting},
		{"idle sessions", testIdle},
		{"jobs", testJobs},
		{"caps and buckets", testCapsAndBuckets},
		{"claims of jobs", testJobClaims},
		{"jobs of a commit", testCommittedJobs},
		{"checkpoints", testCheckpoints},
		{"feedback", testFeedback},
		{"schedules", testSchedules},
		{"triggers", testTriggers},
		{"webhooks", testWebhooks},
		{"places", testPlaces},
		{"attached runtimes", testAttachments},
		{"work queues", testWorkQueues},
		{"variables", testVariables},
		{"MCP servers", testMCPServers},
		{"identities", testIdentities},
		{"files", testFiles},
		{"audit", testAudit},
		{"wakes", testWakes},
		{"concurrency", testConcurrency},
	} {
		t.Run(topic.name, func(t *testing.T) { topic.run(t, open) })
	}
}

// RunRestart runs the part of the suite that opens the same database again.
// reopen closes the open store and opens its database again.
func RunRestart(t *testing.T, open func(t *testing.T) (_ store.Store, reopen func() store.Store)) {
	t.Helper()
	testRestart(t, open)
}

// fixture drives one store.
type fixture struct {
	*testing.T
	store.Store
	n int // makes ids
}

func newFixture(t *testing.T, open func(t *testing.T) store.Store) *fixture {
	t.Helper()
	return &fixture{T: t, Store: open(t)}
}

// must fails the test at once.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) ctx() context.Context { return f.Context() }

func key(session string) store.Key { return store.Key{Tenant: "acme", Session: session} }

// request makes a request id that is kept with the session.
func request(id string) store.Request {
	return store.Request{Method: "/m", Parent: "sessions", ID: id, Digest: []byte("digest")}
}

func newSession(k store.Key) store.NewSession {
	return store.NewSession{
		Key: k, Agent: "agents/coder", AgentRevision: "r1",
		Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/coder"}}},
	}
}

func (f *fixture) create(k store.Key) store.Key {
	f.Helper()
	_, err := f.CreateSession(f.ctx(), newSession(k))
	f.must(err)
	return k
}

func newTurn(k store.Key, id string) store.Submit {
	return store.Submit{
		Key:     k,
		Command: store.Command{Kind: store.CommandTurn, TurnID: id, Body: []byte("body of " + id), User: "ada"},
		Turn: &store.TurnRow{
			ID: id, Run: []byte("run of " + id),
			Turn: &sessionv1.Turn{Name: turnName(k, id), State: sessionv1.TurnState_TURN_STATE_QUEUED, TraceId: "trace of " + id},
		},
	}
}

func turnName(k store.Key, id string) string    { return "sessions/" + k.Session + "/turns/" + id }
func messageName(k store.Key, id string) string { return "sessions/" + k.Session + "/messages/" + id }

func (f *fixture) submitTurn(k store.Key, id string) {
	f.Helper()
	_, err := f.Submit(f.ctx(), newTurn(k, id))
	f.must(err)
}

// claim claims just this session.
func (f *fixture) claim(k store.Key) store.Lease {
	f.Helper()
	leases, err := f.Claim(f.ctx(), store.Claim{Replica: "one", TTL: time.Hour, Only: []store.Key{k}})
	f.must(err)
	if len(leases) != 1 || leases[0].Key != k {
		f.Fatalf("claim of %v gave %v", k, leases)
	}
	return leases[0]
}

// held makes a session with a turn in its inbox and claims it.
func (f *fixture) held(session, turn string) store.Lease {
	f.Helper()
	k := f.create(key(session))
	f.submitTurn(k, turn)
	return f.claim(k)
}

// commit commits one write that must succeed.
func (f *fixture) commit(w store.Write) {
	f.Helper()
	errs, err := f.Commit(f.ctx(), []store.Write{w})
	f.must(err)
	f.must(errs[0])
}

// active makes a session whose turn t1 is active and whose inbox is empty.
func (f *fixture) active(session string) store.Lease {
	f.Helper()
	l := f.held(session, "t1")
	f.commit(start(l, "t1", f.inbox(l)...))
	return l
}

func (f *fixture) inbox(l store.Lease) []store.Command {
	f.Helper()
	commands, err := f.Inbox(f.ctx(), l)
	f.must(err)
	return commands
}

// start returns the write with which a turn begins.
func start(l store.Lease, turn string, commands ...store.Command) store.Write {
	w := store.Write{Lease: l, ActiveTurn: &turn, Turns: []*store.TurnRow{turnIn(l.Key, turn, sessionv1.TurnState_TURN_STATE_RUNNING)}}
	for _, c := range commands {
		w.Consume = append(w.Consume, c.ID)
	}
	return w
}

// finish returns the write with which a turn ends.
func finish(l store.Lease, turn string) store.Write {
	none := ""
	return store.Write{
		Lease: l, ActiveTurn: &none, FinishedTurns: 1,
		Turns: []*store.TurnRow{turnIn(l.Key, turn, sessionv1.TurnState_TURN_STATE_COMPLETE)},
	}
}

func turnIn(k store.Key, id string, state sessionv1.TurnState) *store.TurnRow {
	return &store.TurnRow{ID: id, Run: []byte("run of " + id), Turn: &sessionv1.Turn{Name: turnName(k, id), State: state}}
}

// wait returns the write with which a turn begins to wait for a call.
func wait(l store.Lease, turn string, calls ...store.PendingCall) store.Write {
	return store.Write{
		Lease: l, Wait: calls,
		Turns: []*store.TurnRow{turnIn(l.Key, turn, sessionv1.TurnState_TURN_STATE_WAITING)},
	}
}

// delta returns an event that covers first to last.
func delta(first, last int64, text string) *sessionv1.Event {
	return &sessionv1.Event{
		FirstSeq: first, Seq: last, Time: timestamppb.New(time.Unix(1_700_000_000, 123_456_000)),
		Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: text}},
	}
}

func message(k store.Key, id, parent, text string) *sessionv1.Message {
	m := &sessionv1.Message{
		Name: messageName(k, id), Role: sessionv1.Role_ROLE_USER,
		Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
			Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}},
		}}}},
	}
	if parent != "" {
		m.Parent = messageName(k, parent)
	}
	return m
}

func (f *fixture) session(k store.Key) *sessionv1.Session {
	f.Helper()
	s, err := f.GetSession(f.ctx(), k)
	f.must(err)
	return s
}

// nextID returns an id that is unique in this test.
func (f *fixture) nextID(prefix string) string {
	f.n++
	return fmt.Sprintf("%s%d", prefix, f.n)
}
