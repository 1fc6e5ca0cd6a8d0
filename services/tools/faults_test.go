package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/sqlite"
)

// fault is what happens to a replica at one of its steps: a statement of the
// store, a request to the sandbox, or an answer of it.
type fault string

const (
	refused fault = "refused"               // nothing is done, and that is told as out of reach
	unheard fault = "done, not heard"       // it is done, and told as out of reach
	killed  fault = "killed before"         // the replica does nothing any more
	gasp    fault = "killed after"          // it is done, and the replica does nothing any more
	frozen  fault = "frozen before"         // the replica goes on when another one has made the call
	thawed  fault = "frozen with an answer" // it is done, and the replica goes on when another one has made the call
)

var errKilled = errors.New("the process is no more")

// process is a replica whose steps are counted, and one of them faulty.
type process struct {
	*Service
	at    int // the faulty step, from 1 on; 0 for none
	fault fault

	mu    sync.Mutex
	steps int
	dead  bool
	hit   chan struct{} // closed when the faulty step is reached
	thaw  chan struct{} // closed to let a frozen replica go on
}

// gone says whether the process was killed.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// step does one step, or what its fault makes of it.
func (p *process) step(do func() error) error {
	p.mu.Lock()
	p.steps++
	hit := p.steps == p.at
	dead := p.dead
	if hit {
		p.dead = p.fault == killed || p.fault == gasp
		close(p.hit)
	}
	p.mu.Unlock()
	switch {
	case dead:
		return errKilled
	case !hit:
		return do()
	}
	switch p.fault {
	case refused:
		return status.Error(codes.Unavailable, string(refused))
	case killed:
		return errKilled
	case frozen:
		<-p.thaw
		return do()
	}
	err := do()
	switch {
	case err != nil:
		return err
	case p.fault == unheard:
		return status.Error(codes.Unavailable, string(unheard))
	case p.fault == gasp:
		return errKilled
	}
	<-p.thaw
	return nil
}

// journal is a store.Store whose statements are steps.
type journal struct {
	store.Store
	p *process
}

func (j journal) step(do func() error) error {
	err := j.p.step(do)
	if status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

func (j journal) Enter(ctx context.Context, r store.Ref) (rec store.Record, err error) {
	err = j.step(func() error { rec, err = j.Store.Enter(ctx, r); return err })
	return rec, err
}

func (j journal) Move(ctx context.Context, r store.Ref, c store.Change) error {
	return j.step(func() error { return j.Store.Move(ctx, r, c) })
}

func (j journal) TakeOver(ctx context.Context, r store.Ref, claim int64, o store.Owner, ttl time.Duration) error {
	return j.step(func() error { return j.Store.TakeOver(ctx, r, claim, o, ttl) })
}

// Release is no step: whoever is killed releases nothing.
func (j journal) Release(ctx context.Context, owner string) error {
	if j.p.gone() {
		return errKilled
	}
	return j.Store.Release(ctx, owner)
}

// line is a connection to the sandbox whose requests and answers are steps.
type line struct {
	grpc.ClientConnInterface
	p *process
}

func (l line) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	return l.p.step(func() error { return l.ClientConnInterface.Invoke(ctx, method, in, out, opts...) })
}

func (l line) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (s grpc.ClientStream, err error) {
	err = l.p.step(func() error { s, err = l.ClientConnInterface.NewStream(ctx, d, method, opts...); return err })
	return stream{s, l.p}, err
}

type stream struct {
	grpc.ClientStream
	p *process
}

func (s stream) RecvMsg(m any) error {
	return s.p.step(func() error { return s.ClientStream.RecvMsg(m) })
}

// scene is a store and a sandbox that outlive the replicas.
type scene struct {
	t       *testing.T
	db      store.Store
	sandbox *sandboxtest.Sandbox
	conn    *grpc.ClientConn
}

func newScene(t *testing.T) *scene {
	file := filepath.Join(t.TempDir(), "tools.db")
	migrated.Copy(t, file)
	db, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &scene{t: t, db: db}
	s.sandbox, s.conn = sandboxtest.New(t)
	return s
}

func (s *scene) process(at int, f fault) *process {
	s.t.Helper()
	p := &process{at: at, fault: f, hit: make(chan struct{}), thaw: make(chan struct{})}
	profiles, err := permission.NewSet(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := Defaults()
	c.LeaseTTL = 60 * time.Millisecond // nobody renews it here
	p.Service, err = assemble(c, Deps{Sandbox: line{s.conn, p}, Log: slog.New(slog.DiscardHandler)}, profiles, journal{s.db, p})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.engine.Close)
	return p
}

// ask asks for a call until there is a result, as the session service does; it
// gives up with a replica that was killed.
func (p *process) ask(ctx context.Context, q call.Request) (result *toolsv1.CallResult, err error) {
	for range 50 {
		err = p.engine.Call(principal.With(ctx, principal.Default()), q, func(m *toolsv1.CallToolResponse) error {
			result = m.GetResult()
			return nil
		})
		if err == nil || p.gone() {
			break
		}
	}
	return result, err
}

// effects counts how often a call took effect.
type effects func(*sandboxtest.Sandbox) int

func TestNoFaultAtAnyStepMakesACallTwice(t *testing.T) {
	for name, c := range map[string]struct {
		tool, args, text string
		effects          effects
	}{
		"a command": {"Bash", `{"command":"out x"}`, "x", func(s *sandboxtest.Sandbox) int { return s.Starts("c1") }},
		"a command in the background": {
			"Bash", `{"command":"out x","run_in_background":true}`, "The command runs in the background as the operation operations/c1. check_operation tells how it is, cancel_operation stops it.",
			func(s *sandboxtest.Sandbox) int { return s.Starts("c1") },
		},
		"a change of a file": {
			"Write", `{"file_path":"a","content":"x"}`, "File created successfully at: /workspace/a",
			func(s *sandboxtest.Sandbox) int { return s.Changes("c1") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := call.Request{
				Ref:  store.Ref{Tenant: "default", Session: session, Epoch: 1, CallID: "c1"},
				Tool: c.tool, Arguments: c.args, Policy: policy.Query{Profile: "full"}, Allowed: []string{c.tool},
			}
			clean := newScene(t)
			p := clean.process(0, "")
			if got, err := p.ask(t.Context(), q); err != nil || text(got) != c.text {
				t.Fatalf("without a fault: %v, %v", got, err)
			}
			p.engine.Close()
			if p.steps < 4 {
				t.Fatalf("a call takes %d steps, which cannot be all", p.steps)
			}
			for at := 1; at <= p.steps; at++ {
				faults := []fault{refused, unheard, killed, gasp, frozen, thawed}
				for _, f := range prove.Sample(slices.Concat(faults[at%6:], faults[:at%6]), 3) {
					t.Run(fmt.Sprintf("step %d %s", at, f), func(t *testing.T) {
						t.Parallel()
						faultAt(t, q, at, f, c.text, c.effects)
					})
				}
			}
		})
	}
}

func text(r *toolsv1.CallResult) string { return answer{result: r}.text() }

// faultAt makes a call with one fault, and has another replica ask for it, too.
func faultAt(t *testing.T, q call.Request, at int, f fault, want string, count effects) {
	s := newScene(t)
	first, second := s.process(at, f), s.process(0, "")
	type end struct {
		result *toolsv1.CallResult
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		result, err := first.ask(t.Context(), q)
		ended <- end{result, err}
	}()
	var was end
	if f == frozen || f == thawed {
		select {
		case <-first.hit:
		case was = <-ended: // the step comes after the answer
		}
	} else {
		was = <-ended
	}
	got, err := second.ask(t.Context(), q)
	if err != nil || text(got) != want || got.GetOutcome() != outcomeOK {
		t.Errorf("another replica: %v, %v", got, err)
	}
	close(first.thaw)
	if was == (end{}) {
		was = <-ended
	}
	if was.err == nil {
		if diff := cmp.Diff(got, was.result, protocmp.Transform()); diff != "" {
			t.Errorf("the two replicas tell different results (-second +first):\n%s", diff)
		}
	} else if f != killed && f != gasp {
		t.Errorf("the first replica: %v", was.err)
	}
	first.engine.Close()
	second.engine.Close()
	if n := count(s.sandbox); n != 1 {
		t.Errorf("the call took effect %d times", n)
	}
}
