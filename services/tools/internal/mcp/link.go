package mcp

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

const (
	// firstPause is the pause before a second attempt; it doubles each time, up to
	// lastPause.
	firstPause = time.Second
	lastPause  = time.Minute
	// listAge is the age at which a list is read again; a server may ask for less.
	listAge    = 5 * time.Minute
	minListAge = 5 * time.Second
	// renewPause is the least time between two connections that were made anew.
	renewPause = 30 * time.Second
	// legacyVersion is the last revision of the protocol that begins with initialize.
	legacyVersion = "2025-11-25"
	// maxPrinted bounds the part of a command's standard output in its status.
	maxPrinted = 200
)

var (
	errIdle  = errors.New("the connection was not used")
	errEnded = errors.New("the server ended the connection")
	// errRenew ends a connection for a new one.
	errRenew  = errors.New("the connection is made anew")
	errSilent = errors.New("the server did not answer in time")
)

const (
	connecting = commonv1.McpServerState_MCP_SERVER_STATE_CONNECTING
	connected  = commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED
	failed     = commonv1.McpServerState_MCP_SERVER_STATE_FAILED
	needsLogin = commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION
)

// link is the connection to one server: run makes it, keeps it and makes it again.
type link struct {
	pool    *Pool
	key     string
	server  offer
	ctx     context.Context //nolint:containedctx // of the connection, which outlives the request that asked for it
	stop    context.CancelCauseFunc
	first   Caller
	kick    chan struct{} // asks for an attempt, or for a new list
	gone    chan struct{} // closed when run has ended
	calls   progresses
	watches watches
	pages   pages
	silent  bool        // the last attempt got no answer; only for run
	renewed time.Time   // also
	stale   atomic.Bool // the server does not have a tool that it listed

	mu      sync.Mutex
	caller  Caller // the latest
	holders int
	used    time.Time
	view    view
	changed chan struct{} // closed when the view changes
}

// view is what callers see of a connection. Its parts do not change.
type view struct {
	state   commonv1.McpServerState
	fault   string             // why the server cannot be used
	session *mcp.ClientSession // while it can
	since   time.Time
	began   time.Time // when the first attempt did
	until   time.Time // how long a list waits for it while it is being connected
	catalog catalog   // also of a server that is away: what it had
	printed string    // the first line of a command's standard output that is no message
	wants   string    // what the user must do for calls that the connected server refuses
}

func newLink(ctx context.Context, p *Pool, k string, c Caller, s offer) *link {
	l := &link{
		pool: p, key: k, server: s, caller: c, first: c, kick: make(chan struct{}, 1), gone: make(chan struct{}), used: time.Now(),
		view: view{state: connecting, began: time.Now(), until: time.Now().Add(listWait)}, changed: make(chan struct{}),
	}
	ctx = trace.ContextWithSpanContext(context.WithoutCancel(ctx), trace.SpanContext{})
	l.ctx, l.stop = context.WithCancelCause(ctx)
	return l
}

// hold keeps the connection from being idle until release.
func (l *link) hold(c Caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders++
	// The epochs of a subagent's session and of its root's are not compared.
	if c.Ref.Holder != l.caller.Ref.Holder || c.Ref.Epoch >= l.caller.Ref.Epoch {
		l.caller = c
	}
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders--
	l.used = time.Now()
}

func (l *link) lastUse() (used time.Time, free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, l.holders == 0
}

// look returns the current view, and a channel that is closed when it changes.
func (l *link) look() (view, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view, l.changed
}

func (l *link) show(change func(*view)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.view)
	close(l.changed)
	l.changed = make(chan struct{})
}

// printed keeps the first line of a command's standard output that is no message, for the server's status.
func (l *link) printed(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view.printed == "" {
		l.view.printed = cut(strings.TrimSpace(valid(string(line))), maxPrinted)
	}
}

// nudge asks for an attempt, or for a new list, now.
func (l *link) nudge() {
	select {
	case l.kick <- struct{}{}:
	default: // asked for already
	}
}

// outdated asks for a new list, and for a new connection if the list does not change by
// that. A command keeps its connection, and with it what it remembers.
func (l *link) outdated(renew bool) {
	l.stale.Store(renew)
	l.nudge()
}

// settled waits until the connection is made or has failed, or until ctx ends.
func (l *link) settled(ctx context.Context) view {
	for {
		v, changed := l.look()
		if v.state != connecting {
			return v
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v
		}
	}
}

// inTime is settled for a list, which waits only for a server that was not tried in vain: a
// server that hangs must not delay every step of a turn.
func (l *link) inTime(ctx context.Context) view {
	v, _ := l.look()
	ctx, cancel := context.WithDeadline(ctx, v.until)
	defer cancel()
	return l.settled(ctx)
}

// ready returns the view of a connected server. If the server is away, it asks for one
// attempt and waits for its end, or for the end of ctx.
func (l *link) ready(ctx context.Context) view {
	v := l.settled(ctx)
	if v.state == connected || v.state == connecting {
		return v
	}
	v, changed := l.look()
	if v.state != connected {
		l.nudge()
		select {
		case <-changed:
		case <-l.gone:
		case <-ctx.Done():
		}
	}
	return l.settled(ctx)
}

// run makes the connection, and makes it again when it breaks, until it is idle or
// stopped.
func (l *link) run() {
	defer func() {
		l.stop(nil)
		l.pool.drop(l, 0)
		l.show(func(v *view) { v.state, v.fault = failed, cmp.Or(plain(context.Cause(l.ctx)), errEnded.Error()) })
		close(l.gone)
	}()
	for pause := firstPause; ; {
		worked, err := l.serve()
		switch {
		case l.ctx.Err() != nil || errors.Is(err, errIdle):
			return
		case errors.Is(err, errRenew):
			continue
		}
		if worked {
			pause = firstPause
		}
		l.pool.Log.InfoContext(l.ctx, "mcp server is away", "server", l.server.GetName(), "error", plain(err))
		l.show(func(v *view) { v.state, v.fault = stateOf(err), plain(err) })
		// Jitter keeps many connections from coming back at the same moment.
		if err := l.wait(nil, pause/2+rand.N(pause)); err != nil { //nolint:gosec // no secret
			return
		}
		pause = min(2*pause, lastPause)
		if !errors.Is(err, errSilent) { // another attempt takes as long, and meanwhile it is known what is wrong
			l.show(func(v *view) { v.state = connecting })
		}
	}
}

// wait waits for a time, for a nudge, or for the end of a session, which it returns. The
// end of the connection, and its idleness, are errors.
func (l *link) wait(ended <-chan error, d time.Duration) error {
	after := time.NewTimer(d)
	defer after.Stop()
	idle := time.NewTicker(max(l.pool.Idle/4, 10*time.Millisecond))
	defer idle.Stop()
	for {
		select {
		case <-after.C:
			return nil
		case <-l.kick:
			return nil
		case <-idle.C:
			if l.pool.drop(l, l.pool.Idle) {
				return errIdle
			}
		case err := <-ended:
			if err == nil {
				err = errEnded
			}
			return err
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
}

// serve makes a connection and keeps it until it breaks or is idle. It reports whether
// the server could be used.
func (l *link) serve() (worked bool, err error) {
	var t mcp.Transport
	if l.server.GetStdio() == nil {
		if t, err = l.transport(); err != nil {
			return false, err
		}
		return l.over(t, func(err error) error { return err })
	}
	p := l.newProcess()
	worked, err = l.over(p, p.explain)
	p.stop()
	if errors.Is(err, errIdle) || l.ctx.Err() != nil {
		return worked, err
	}
	return worked, p.explain(err)
}

// over is serve over a transport. explain says why a server is silent, which is known before the end of its last request.
func (l *link) over(t mcp.Transport, explain func(error) error) (worked bool, err error) {
	// A transport may need the context of its connection for as long as the connection is.
	ctx, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	late := time.AfterFunc(l.pool.Start, func() {
		why := plain(explain(errSilent))
		l.show(func(v *view) { v.state, v.fault = failed, why })
		cancel(errSilent)
	})
	session, err := l.connect(ctx, t)
	if err != nil {
		late.Stop()
		return false, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- session.Wait()
		close(ended)
	}()
	defer func() {
		l.show(func(v *view) {
			if v.state == connected {
				v.until = time.Now().Add(listWait)
			}
			v.state, v.session = connecting, nil
		})
		_ = session.Close() // the end of a connection that has broken is an error, too
		for range ended {
		}
	}()
	found, err := l.list(session)
	if err == nil {
		err = l.hear(session)
	}
	if err == nil && !late.Stop() {
		err = errSilent
	}
	if err != nil {
		return false, err
	}
	l.show(func(v *view) {
		*v = view{state: connected, session: session, since: time.Now(), catalog: found, printed: v.printed}
	})
	for {
		if err := l.wait(ended, found.age); err != nil {
			return true, err
		}
		if l.stale.Load() && time.Since(l.renewed) > renewPause && l.calls.none() {
			// The SDK answers from its cache until the server's time for the list is over.
			l.stale.Store(false)
			l.renewed = time.Now()
			return true, errRenew
		}
		if again, err := l.list(session); err == nil {
			found = again
		} else {
			found.trouble = "its list of tools cannot be read again: " + plain(err)
		}
		l.show(func(v *view) { v.catalog = found })
	}
}

// connect connects to the server, in the newest revision of the protocol that it knows.
func (l *link) connect(ctx context.Context, t mcp.Transport) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "fairlead", Version: cmp.Or(l.pool.Version, "dev")}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{ // neither roots nor sampling
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true}, // the journal keeps what is asked
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { l.nudge() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { l.nudge() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { l.nudge() },
		ResourceUpdatedHandler:     func(_ context.Context, q *mcp.ResourceUpdatedNotificationRequest) { l.watches.updated(q.Params.URI) },
		// Reports that calls.see could not read, because their message has several lines.
		ProgressNotificationHandler: func(_ context.Context, q *mcp.ProgressNotificationClientRequest) { l.calls.report(q.Params) },
	})
	client.AddReceivingMiddleware(l.elicits)
	client.AddSendingMiddleware(l.pages.follow)
	options := &mcp.ClientSessionOptions{}
	if l.silent {
		options.ProtocolVersion = legacyVersion
	}
	session, err := client.Connect(ctx, t, options)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		// An old server may say nothing to a request that it does not know.
		l.silent = errors.Is(err, errSilent) && !l.silent
	}
	return session, err
}

// lost ends a session that the server has forgotten.
func (l *link) lost(session *mcp.ClientSession) {
	_, changed := l.look()
	v, _ := l.look()
	if v.session != session {
		return
	}
	_ = session.Close()
	select {
	case <-changed:
	case <-l.ctx.Done():
	}
}
