// Package load is the clients of a chaos run: they open sessions, send messages, follow events, lose and drop
// their connections, reconnect at any entry, and record everything that they see.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

const (
	// attemptTime bounds one try of a request: the replica may have been stopped with it under way.
	attemptTime = 3 * time.Second
	// followers is how many clients follow each session.
	followers = 2
)

// Options configure the amount of load.
type Options struct {
	Replicas []string // public addresses of session
	Tools    []string // public addresses of tools
	HTTP     string   // of the gateway
	GRPC     string   // of the gateway
	Agent    string   // of the sessions
	Sessions int
	Seed     uint64
	Script   *script.Script
	// Tenant has Users with short budgets. It cannot be reached from the public side: its clients connect
	// like an authenticating gateway, at the peer addresses of session and tools.
	Tenant                  string
	Users                   []string
	SessionPeers, ToolPeers []string
	Keys                    *internaltoken.Keys // of these
}

// Load is the clients.
type Load struct {
	options  Options
	public   door                           // for all other clients
	peers    door                           // for the users of the tenant
	gateway  sessionv1.SessionServiceClient // over gRPC
	pages    *http.Client                   // that of the gateway's protocols
	conns    []*grpc.ClientConn
	stop     chan struct{}
	drivers  sync.WaitGroup
	follow   sync.WaitGroup
	ending   context.Context //nolint:containedctx // ends when followers have to come to the log's end
	end      context.CancelFunc
	finished atomic.Int64 // turns
	forks    atomic.Int64
	seen     *sightings

	mu       sync.Mutex // guards what follows
	sessions []*client
}

// door has all entries to Fairlead for one kind of client.
type door struct {
	entries []entry
	lookers []looker
}

// client is the clients of one session.
type client struct {
	load   *Load
	door   door
	number int
	rand   *rand.Rand
	gone   chan struct{} // closed when no more messages are sent

	mu        sync.Mutex // guards what follows
	record    *record.Session
	ended     map[string]bool   // turns that a follower saw end
	news      chan struct{}     // closed when a turn has ended
	target    int64             // the end of the log, once it is known
	subagents map[string]string // their sessions, by the calls that made them
	// scheduled are turns that schedules have sent.
	scheduled []string
	compacted int  // number of compactions whose result is in the log
	partial   bool // a budget has ended a turn since the flag was last read

	people sync.WaitGroup // goroutines that answer questions, look at operations and fork
	left   bool           // no such goroutine starts any more
}

// Start begins to make load, until Stop.
func Start(ctx context.Context, o Options) (*Load, error) {
	l := &Load{options: o, stop: make(chan struct{}), seen: newSightings()}
	l.ending, l.end = context.WithCancel(ctx)
	if err := l.connect(); err != nil {
		l.end()
		return nil, err
	}
	for range o.Sessions {
		c := l.client(&record.Session{})
		l.drivers.Go(func() { c.drive(ctx, math.MaxInt) })
	}
	for _, u := range o.Users {
		l.drivers.Go(func() {
			l.scrimp(principal.With(ctx, principal.Principal{Tenant: o.Tenant, User: u, Role: principal.RoleOperator}), u)
		})
	}
	return l, nil
}

// client adds the clients of a session.
func (l *Load) client(s *record.Session) *client {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sessions)
	c := &client{
		load: l, number: n, rand: rand.New(rand.NewPCG(l.options.Seed, uint64(100+n))), //nolint:gosec // a schedule, not a secret
		door: l.public, record: s, ended: map[string]bool{}, news: make(chan struct{}), gone: make(chan struct{}), subagents: map[string]string{},
	}
	if s.Tenant != "" {
		c.door = l.peers
	}
	l.sessions = append(l.sessions, c)
	return c
}

// all returns the clients so far.
func (l *Load) all() []*client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sessions)
}

// Finished returns how many turns the clients have seen end.
func (l *Load) Finished() int64 { return l.finished.Load() }

// Stop starts no new turns, and returns when all have ended. When ctx ends, it returns an error with the
// number of the others.
func (l *Load) Stop(ctx context.Context) error {
	close(l.stop)
	done := make(chan struct{})
	go func() { l.drivers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		open := 0
		for _, c := range l.all() {
			c.mu.Lock()
			open += len(c.record.Accepted) - len(c.ended)
			c.mu.Unlock()
		}
		return fmt.Errorf("%d turns have not ended", open)
	}
}

// Close has followers read to the end of their logs and returns the clients' records. read completes the
// record of a session with its final state.
func (l *Load) Close(ctx context.Context, read func(ctx context.Context, s *record.Session) error) ([]*record.Session, error) {
	var all []*record.Session
	var errs error
	for _, c := range l.all() {
		c.mu.Lock()
		s := c.record
		c.mu.Unlock()
		if s.Name == "" {
			continue // it never came to be
		}
		if err := read(ctx, s); err != nil {
			errs = errors.Join(errs, fmt.Errorf("read %s: %w", s.Name, err))
		}
		c.mu.Lock()
		if n := len(s.Log); n > 0 {
			c.target = s.Log[n-1].GetSeq()
		}
		c.mu.Unlock()
		all = append(all, s)
	}
	l.end()
	l.follow.Wait()
	for _, c := range l.conns {
		_ = c.Close()
	}
	return all, errs
}

// drive opens the session and talks in it for this many rounds.
func (c *client) drive(ctx context.Context, rounds int) {
	name, _, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, key string) (string, error) { return e.createSession(ctx, key) })
	if !ok {
		return
	}
	c.converse(ctx, name, rounds)
}

// converse lets people talk in the session for so many rounds, or until the load stops, while others follow.
func (c *client) converse(ctx context.Context, name string, rounds int) {
	defer close(c.gone)
	defer c.leave()
	c.mu.Lock()
	c.record.Name = name
	for i := range followers {
		f := &record.Follower{Name: fmt.Sprintf("follower %d", i+1)}
		c.record.Followers = append(c.record.Followers, f)
		r := rand.New(rand.NewPCG(c.rand.Uint64(), uint64(i))) //nolint:gosec // a schedule, not a secret
		c.load.follow.Go(func() { c.follow(ctx, f, r, i == 0) })
	}
	c.wire(ctx, name)
	c.mu.Unlock()
	if c.record.Fork == nil && c.record.Tenant == "" {
		c.plan(ctx, name)
	}
	c.talk(ctx, name, rounds)
	c.hush(ctx)
}

func (c *client) talk(ctx context.Context, name string, rounds int) {
	for round := range rounds {
		select {
		case <-c.load.stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		c.round(ctx, name, round)
		if !c.settled(ctx) {
			return
		}
		c.broke(ctx)
		if c.rand.IntN(rewindOneIn) == 0 {
			c.rewind(ctx, name)
		}
		if c.rand.IntN(compactOneIn) == 0 {
			c.compact(ctx, name)
		}
		wait(ctx, time.Duration(c.rand.IntN(200))*time.Millisecond)
	}
}

// round sends a message, and now and then a few more while its turn runs.
func (c *client) round(ctx context.Context, name string, round int) {
	if c.rand.IntN(forkOneIn) == 0 {
		c.branch(ctx, name)
	}
	burst := 1
	if c.rand.IntN(3) == 0 {
		burst += 1 + c.rand.IntN(3)
	}
	for i := range burst {
		on := sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED
		if i > 0 { // it mostly arrives during the turn
			on = arrivals[c.rand.IntN(len(arrivals))]
			wait(ctx, time.Duration(c.rand.IntN(500))*time.Millisecond)
		}
		c.send(ctx, name, script.Text(c.rand.IntN(c.load.options.Script.Quiet()), fmt.Sprintf("s%03d-t%04d-%d", c.number, round, i)), on)
	}
}

// arrivals are what messages ask for that arrive during a turn.
var arrivals = [...]sessionv1.OnActive{
	sessionv1.OnActive_ON_ACTIVE_QUEUE, sessionv1.OnActive_ON_ACTIVE_QUEUE, sessionv1.OnActive_ON_ACTIVE_STEER,
	sessionv1.OnActive_ON_ACTIVE_STEER, sessionv1.OnActive_ON_ACTIVE_INTERRUPT, sessionv1.OnActive_ON_ACTIVE_ROLLBACK,
}

// send submits a turn until it is acknowledged, and now and then once more.
func (c *client) send(ctx context.Context, session, text string, on sessionv1.OnActive) {
	run := on == sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED && c.rand.IntN(4) == 0
	submit := func(ctx context.Context, e entry, key string) (string, error) {
		if run {
			return e.runTurn(ctx, session, text, key)
		}
		return e.createTurn(ctx, session, text, on, key)
	}
	turn, key, ok := c.mutate(ctx, c.rand, submit)
	if !ok {
		return
	}
	a := record.Accepted{RequestID: key, Text: text, OnActive: on, Turn: turn, Time: time.Now()}
	if c.rand.IntN(8) == 0 {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		if again, err := submit(try, c.entry(c.rand), key); err == nil {
			a.Others = append(a.Others, again)
		}
		cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Accepted = append(c.record.Accepted, a)
}

// mutate makes a request at one entry after the other, with one key, until it is answered.
// If the request is refused, answer is the reason and ok is false; when ctx ends, answer is empty.
func (c *client) mutate(ctx context.Context, r *rand.Rand, do func(ctx context.Context, e entry, key string) (string, error)) (answer, key string, ok bool) {
	key = id.New()
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		e := c.entry(r)
		answer, err := do(try, e, key)
		cancel()
		if err == nil {
			return answer, key, true
		}
		if errors.Is(err, errRefused) {
			return err.Error(), key, false
		}
		if !errors.Is(err, errAgain) && ctx.Err() == nil {
			c.refused(e, err)
		}
		wait(ctx, time.Duration(20+r.IntN(150))*time.Millisecond)
	}
	return "", key, false
}

func (c *client) refused(e interface{ name() string }, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Refused = append(c.record.Refused, fmt.Sprintf("%s at %s: %v", time.Now().Format(time.TimeOnly), e.name(), err))
}

func (c *client) entry(r *rand.Rand) entry { return c.door.entries[r.IntN(len(c.door.entries))] }

// settled waits until all accepted turns have ended.
func (c *client) settled(ctx context.Context) bool {
	for {
		c.mu.Lock()
		open := 0
		for _, a := range c.record.Accepted {
			if !c.ended[a.Turn] {
				open++
			}
		}
		for _, turn := range c.scheduled {
			if !c.ended[turn] {
				open++
			}
		}
		news := c.news
		c.mu.Unlock()
		if open == 0 {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
