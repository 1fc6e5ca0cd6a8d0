// Package faulty makes a store fail on request of a test: before a call reaches
// the database, or after it has done its work there. The second case is that of
// a connection that breaks between a commit and its answer: the caller does not
// know what was written.
package faulty

import (
	"context"
	"fmt"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Method names a method of store.Store.
type Method string

// Methods that can fail. Close cannot.
const (
	CreateSession  Method = "CreateSession"
	GetSession     Method = "GetSession"
	SessionOwner   Method = "SessionOwner"
	ListSessions   Method = "ListSessions"
	DeleteSession  Method = "DeleteSession"
	Submit         Method = "Submit"
	LeaseTokens    Method = "LeaseTokens"
	GetTurn        Method = "GetTurn"
	TurnOfRequest  Method = "TurnOfRequest"
	ListTurns      Method = "ListTurns"
	ListEvents     Method = "ListEvents"
	ListMessages   Method = "ListMessages"
	ListTree       Method = "ListTree"
	ImportSession  Method = "ImportSession"
	Claim          Method = "Claim"
	Load           Method = "Load"
	LoadTurn       Method = "LoadTurn"
	Fenced         Method = "Fenced"
	Salvage        Method = "Salvage"
	Inbox          Method = "Inbox"
	Commit         Method = "Commit"
	Balances       Method = "Balances"
	Spend          Method = "Spend"
	Renew          Method = "Renew"
	Release        Method = "Release"
	PassOn         Method = "PassOn"
	ReleaseIdle    Method = "ReleaseIdle"
	DeleteIdle     Method = "DeleteIdle"
	FoldEvents     Method = "FoldEvents"
	IndexMessages  Method = "IndexMessages"
	SearchMessages Method = "SearchMessages"
	PutJobs        Method = "PutJobs"
	RequestJobs    Method = "RequestJobs"
	ClaimJobs      Method = "ClaimJobs"
	EndJob         Method = "EndJob"
	Listen         Method = "Listen"
	Ping           Method = "Ping"
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
	audits
	agents
	approvals
	attachments
	checkpoints
	feedbacks
	files
	identities
	imports
	mcpServers
	places
	schedules
	triggers
	variables
	webhooks
	workQueues
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
	audits      struct{ *injector }
	agents      struct{ *injector }
	approvals   struct{ *injector }
	attachments struct{ *injector }
	checkpoints struct{ *injector }
	feedbacks   struct{ *injector }
	files       struct{ *injector }
	identities  struct{ *injector }
	imports     struct{ *injector }
	mcpServers  struct{ *injector }
	places      struct{ *injector }
	schedules   struct{ *injector }
	triggers    struct{ *injector }
	variables   struct{ *injector }
	webhooks    struct{ *injector }
	workQueues  struct{ *injector }
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
	return &Store{i, audits{i}, agents{i}, approvals{i}, attachments{i}, checkpoints{i}, feedbacks{i}, files{i}, identities{i}, imports{i}, mcpServers{i}, places{i}, schedules{i}, triggers{i}, variables{i}, webhooks{i}, workQueues{i}}
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
