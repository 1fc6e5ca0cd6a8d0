// Package faulty makes a store fail on request of a test: before a call reaches
// the database, or after it has done its work there. The second case is that of
// a connection that breaks between a commit and its answer: the caller does not
// know what was written.
package faulty

import (
	"context"
	"fmt"
	"sync"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Method names a method of store.Store.
type Method string

// Methods that can fail. Close cannot.
const (
	CreateSession    Method = "CreateSession"
	GetSession       Method = "GetSession"
	ListSessions     Method = "ListSessions"
	DeleteSession    Method = "DeleteSession"
	PutAgentRevision Method = "PutAgentRevision"
	GetAgentRevision Method = "GetAgentRevision"
	Submit           Method = "Submit"
	GetTurn          Method = "GetTurn"
	ListTurns        Method = "ListTurns"
	ListEvents       Method = "ListEvents"
	ListMessages     Method = "ListMessages"
	ListTree         Method = "ListTree"
	ImportSession    Method = "ImportSession"
	Claim            Method = "Claim"
	Load             Method = "Load"
	LoadTurn         Method = "LoadTurn"
	Fenced           Method = "Fenced"
	Salvage          Method = "Salvage"
	Inbox            Method = "Inbox"
	Commit           Method = "Commit"
	Balances         Method = "Balances"
	Renew            Method = "Renew"
	Release          Method = "Release"
	ReleaseIdle      Method = "ReleaseIdle"
	DeleteIdle       Method = "DeleteIdle"
	FoldEvents       Method = "FoldEvents"
	IndexMessages    Method = "IndexMessages"
	SearchMessages   Method = "SearchMessages"
	PutJobs          Method = "PutJobs"
	RequestJobs      Method = "RequestJobs"
	ClaimJobs        Method = "ClaimJobs"
	EndJob           Method = "EndJob"
	Listen           Method = "Listen"
	Ping             Method = "Ping"
)

// When is the side of the work on which a call fails.
type When int

// A call that fails before does nothing. A call that fails after has done all
// of its work, and its results are lost.
const (
	Before When = iota
	After
)

// Err is the default error of failed calls. It wraps store.ErrUnavailable.
var Err = fmt.Errorf("injected: %w", store.ErrUnavailable)

// Store is a store that fails on request. Its methods may be called
// concurrently.
type Store struct {
	*injector
	checkpoints
	identities
	imports
	places
	schedules
	variables
	webhooks
}

var _ store.Store = (*Store)(nil)

// injector makes the calls of a store fail.
type injector struct {
	inner store.Store

	mu     sync.Mutex
	calls  map[Method]int
	faults []*fault
	down   error
	frozen *Pause
}

// Subjects of a store.
type (
	checkpoints struct{ *injector }
	identities  struct{ *injector }
	imports     struct{ *injector }
	places      struct{ *injector }
	schedules   struct{ *injector }
	variables   struct{ *injector }
	webhooks    struct{ *injector }
)

type fault struct {
	method Method
	call   int // the number of the call that it hits
	when   When
	err    error
	pause  *Pause
	kill   chan struct{}
	freeze *Pause
}

// New returns a store that works like inner until it is told to fail. Closing
// it closes inner.
func New(inner store.Store) *Store {
	i := &injector{inner: inner, calls: map[Method]int{}}
	return &Store{i, checkpoints{i}, identities{i}, imports{i}, places{i}, schedules{i}, variables{i}, webhooks{i}}
}

// Fail makes the n-th call of a method from now on fail, once; 1 is the next
// one. A nil error means Err.
func (s *injector) Fail(m Method, n int, when When, err error) {
	if err == nil {
		err = Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{method: m, call: s.calls[m] + n, when: when, err: err})
}

// Down makes every call fail before it does anything, until Up.
func (s *injector) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = Err
}

// Up ends Down.
func (s *injector) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
}

// Calls returns how often a method was called.
func (s *injector) Calls(m Method) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[m]
}

// Pause is a paused call.
type Pause struct {
	// Reached is closed when the call has come to its pause.
	Reached chan struct{}
	resume  chan struct{}
	once    sync.Once
}

// Resume lets the call go on. It may be called more than once, and early.
func (p *Pause) Resume() { p.once.Do(func() { close(p.resume) }) }

// Hold pauses the n-th call of a method from now on, before or after its work,
// until it is resumed or its context ends: a holder that is paused and wakes up
// again.
func (s *injector) Hold(m Method, n int, when When) *Pause {
	p := &Pause{Reached: make(chan struct{}), resume: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{method: m, call: s.calls[m] + n, when: when, pause: p})
	return p
}

// Kill makes the n-th call of a method from now on the last one. It fails, before or after its work, and so
// does every call after it, like those of a process that died there. The channel is closed then.
func (s *injector) Kill(m Method, n int, when When) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &fault{method: m, call: s.calls[m] + n, when: when, err: Err, kill: make(chan struct{})}
	s.faults = append(s.faults, f)
	return f.kill
}

// Freeze pauses the n-th call of a method from now on, before or after its work, and every call that begins
// after it, until it is resumed: like a process that was stopped and wakes up again.
func (s *injector) Freeze(m Method, n int, when When) *Pause {
	p := &Pause{Reached: make(chan struct{}), resume: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{method: m, call: s.calls[m] + n, when: when, freeze: p})
	return p
}

// thawed waits while the store is frozen.
func (s *injector) thawed(ctx context.Context) error {
	s.mu.Lock()
	p := s.frozen
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.wait(ctx)
}

func (p *Pause) wait(ctx context.Context) error {
	select {
	case <-p.resume:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin counts a call, and takes the faults that apply to it.
func (s *injector) begin(m Method) (hit []*fault, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[m]++
	kept := s.faults[:0]
	for _, f := range s.faults {
		if f.method == m && f.call == s.calls[m] {
			hit = append(hit, f)
		} else {
			kept = append(kept, f)
		}
	}
	s.faults = kept
	return hit, s.down
}

// strike applies the faults of one side.
func (s *injector) strike(ctx context.Context, hit []*fault, when When) error {
	for _, f := range hit {
		switch {
		case f.when != when:
		case f.kill != nil:
			s.Down()
			close(f.kill)
			return f.err
		case f.freeze != nil:
			s.mu.Lock()
			s.frozen = f.freeze
			s.mu.Unlock()
			close(f.freeze.Reached)
			if err := f.freeze.wait(ctx); err != nil {
				return err
			}
		case f.pause == nil:
			return f.err
		default:
			close(f.pause.Reached)
			if err := f.pause.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// do does a method's work between the faults of both sides.
func do[T any](ctx context.Context, s *injector, m Method, work func() (T, error)) (T, error) {
	var none T
	hit, err := s.begin(m)
	if err != nil {
		return none, err
	}
	if err := s.thawed(ctx); err != nil {
		return none, err
	}
	if err := s.strike(ctx, hit, Before); err != nil {
		return none, err
	}
	out, err := work()
	if err := s.strike(ctx, hit, After); err != nil {
		return none, err
	}
	return out, err
}

// just is do for work without a result.
func just(ctx context.Context, s *injector, m Method, work func() error) error {
	_, err := do(ctx, s, m, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

// CreateSession implements store.Store.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) (store.Answer, error) {
	return do(ctx, s.injector, CreateSession, func() (store.Answer, error) { return s.inner.CreateSession(ctx, n) })
}

// GetSession implements store.Store.
func (s *Store) GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error) {
	return do(ctx, s.injector, GetSession, func() (*sessionv1.Session, error) { return s.inner.GetSession(ctx, k) })
}

// ListSessions implements store.Store.
func (s *Store) ListSessions(ctx context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	return do(ctx, s.injector, ListSessions, func() ([]*sessionv1.Session, error) { return s.inner.ListSessions(ctx, p) })
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, k store.Key, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteSession, func() (store.Answer, error) { return s.inner.DeleteSession(ctx, k, r) })
}

// PutAgentRevision implements store.Store.
func (s *Store) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	return just(ctx, s.injector, PutAgentRevision, func() error { return s.inner.PutAgentRevision(ctx, tenant, a) })
}

// GetAgentRevision implements store.Store.
func (s *Store) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	return do(ctx, s.injector, GetAgentRevision, func() (store.AgentRevision, error) {
		return s.inner.GetAgentRevision(ctx, tenant, name, revision)
	})
}

// Submit implements store.Store.
func (s *Store) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	return do(ctx, s.injector, Submit, func() (store.Answer, error) { return s.inner.Submit(ctx, n) })
}

// GetTurn implements store.Store.
func (s *Store) GetTurn(ctx context.Context, k store.Key, id string) (*sessionv1.Turn, error) {
	return do(ctx, s.injector, GetTurn, func() (*sessionv1.Turn, error) { return s.inner.GetTurn(ctx, k, id) })
}

// ListTurns implements store.Store.
func (s *Store) ListTurns(ctx context.Context, k store.Key, after string, limit int) ([]*sessionv1.Turn, error) {
	return do(ctx, s.injector, ListTurns, func() ([]*sessionv1.Turn, error) { return s.inner.ListTurns(ctx, k, after, limit) })
}

// ListEvents implements store.Store.
func (s *Store) ListEvents(ctx context.Context, k store.Key, afterSeq int64, limit, maxBytes int) ([]*sessionv1.Event, error) {
	return do(ctx, s.injector, ListEvents, func() ([]*sessionv1.Event, error) {
		return s.inner.ListEvents(ctx, k, afterSeq, limit, maxBytes)
	})
}

// ListMessages implements store.Store.
func (s *Store) ListMessages(ctx context.Context, k store.Key, head, after string, limit int) ([]*sessionv1.Message, error) {
	return do(ctx, s.injector, ListMessages, func() ([]*sessionv1.Message, error) {
		return s.inner.ListMessages(ctx, k, head, after, limit)
	})
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return do(ctx, s.injector, Claim, func() ([]store.Lease, error) { return s.inner.Claim(ctx, c) })
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, l store.Lease) (*store.Snapshot, error) {
	return do(ctx, s.injector, Load, func() (*store.Snapshot, error) { return s.inner.Load(ctx, l) })
}

// LoadTurn implements store.Store.
func (s *Store) LoadTurn(ctx context.Context, l store.Lease, id string) (*store.TurnRow, error) {
	return do(ctx, s.injector, LoadTurn, func() (*store.TurnRow, error) { return s.inner.LoadTurn(ctx, l, id) })
}

// Salvage implements store.Store.
func (s *Store) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	return do(ctx, s.injector, Salvage, func() (*store.Salvage, error) { return s.inner.Salvage(ctx, l) })
}

// Fenced implements store.Store.
func (s *Store) Fenced(ctx context.Context, l store.Lease) error {
	return just(ctx, s.injector, Fenced, func() error { return s.inner.Fenced(ctx, l) })
}

// Inbox implements store.Store.
func (s *Store) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	return do(ctx, s.injector, Inbox, func() ([]store.Command, error) { return s.inner.Inbox(ctx, l) })
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	return do(ctx, s.injector, Commit, func() ([]error, error) { return s.inner.Commit(ctx, writes) })
}

// Balances implements store.Store.
func (s *Store) Balances(ctx context.Context, tenant string, bounds []store.Bound) ([]store.Balance, error) {
	return do(ctx, s.injector, Balances, func() ([]store.Balance, error) { return s.inner.Balances(ctx, tenant, bounds) })
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Key, error) {
	return do(ctx, s.injector, Renew, func() ([]store.Key, error) { return s.inner.Renew(ctx, leases, ttl) })
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return just(ctx, s.injector, Release, func() error { return s.inner.Release(ctx, l) })
}

// ReleaseIdle implements store.Store.
func (s *Store) ReleaseIdle(ctx context.Context, l store.Lease) (bool, error) {
	return do(ctx, s.injector, ReleaseIdle, func() (bool, error) { return s.inner.ReleaseIdle(ctx, l) })
}

// DeleteIdle implements store.Store.
func (s *Store) DeleteIdle(ctx context.Context, idle time.Duration, limit int) ([]store.Key, error) {
	return do(ctx, s.injector, DeleteIdle, func() ([]store.Key, error) { return s.inner.DeleteIdle(ctx, idle, limit) })
}

// FoldEvents implements store.Store.
func (s *Store) FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error {
	return just(ctx, s.injector, FoldEvents, func() error { return s.inner.FoldEvents(ctx, k, first, last, events) })
}

// IndexMessages implements store.Store.
func (s *Store) IndexMessages(ctx context.Context, k store.Key, limit int) (int, error) {
	return do(ctx, s.injector, IndexMessages, func() (int, error) { return s.inner.IndexMessages(ctx, k, limit) })
}

// SearchMessages implements store.Store.
func (s *Store) SearchMessages(ctx context.Context, m store.MessageSearch) ([]*sessionv1.Message, error) {
	return do(ctx, s.injector, SearchMessages, func() ([]*sessionv1.Message, error) { return s.inner.SearchMessages(ctx, m) })
}

// RequestJobs implements store.Store.
func (s *Store) RequestJobs(ctx context.Context, tenant string, jobs []store.Job, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, RequestJobs, func() (store.Answer, error) { return s.inner.RequestJobs(ctx, tenant, jobs, r) })
}

// PutJobs implements store.Store.
func (s *Store) PutJobs(ctx context.Context, jobs []store.Job) error {
	return just(ctx, s.injector, PutJobs, func() error { return s.inner.PutJobs(ctx, jobs) })
}

// ClaimJobs implements store.Store.
func (s *Store) ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error) {
	return do(ctx, s.injector, ClaimJobs, func() ([]store.Job, error) { return s.inner.ClaimJobs(ctx, c) })
}

// EndJob implements store.Store.
func (s *Store) EndJob(ctx context.Context, j store.Job, again *store.Job) error {
	return just(ctx, s.injector, EndJob, func() error { return s.inner.EndJob(ctx, j, again) })
}

// Listen implements store.Store. A listener that fails after its work leaves no
// unread channel behind: the channel ends with ctx.
func (s *Store) Listen(ctx context.Context) (<-chan store.Wake, error) {
	return do(ctx, s.injector, Listen, func() (<-chan store.Wake, error) { return s.inner.Listen(ctx) })
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return just(ctx, s.injector, Ping, func() error { return s.inner.Ping(ctx) })
}

// Close implements store.Store.
func (s *Store) Close() error { return s.inner.Close() }
