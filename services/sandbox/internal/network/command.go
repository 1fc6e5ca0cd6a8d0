package network

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// command is a running command.
type command struct {
	n     *Network
	way   way
	id    string
	order int64                // of its start
	note  func(int64, box.Use) // called for each use, with its number; may be nil
	ctx   context.Context      //nolint:containedctx // of its call: the parent of its connections' spans
	cut   context.CancelFunc   // ends ctx, and with it the connections
	texts map[string]string    // shared texts of uses
	over  chan struct{}        // closed when all uses are known; nil: not asked for yet

	// Guarded by the network's mu, as over and texts are.
	at      *outlet           // of its sandbox; nil until known
	ending  bool              // its processes have ended, and all that they began is known
	closed  bool              // nothing of it can begin any more
	open    map[*use]struct{} // open uses
	settled chan struct{}     // if not nil, closed when open is empty
	begun   int64             // uses that began
	taken   int               // uses, and open ones that will become one
	uses    []box.Use
	beyond  box.Use // all that were refused beyond the maximum number
}

// use is an open use of a command: a request, a tunnel, or a connection that waits for a request.
type use struct {
	c      *command
	number int64
	add    func(egress.Event) *box.Use // adds it to the command's uses; nil once added
	known  egress.Event                // reported if its end does not come
}

// Follow implements box.Network.
func (n *Network) Follow(ctx context.Context, s box.Sandbox, callID string, note func(int64, box.Use)) box.Followed {
	c := &command{n: n, way: wayOf(s), id: callID, note: note, texts: map[string]string{}, open: map[*use]struct{}{}}
	c.ctx, c.cut = context.WithCancel(context.WithoutCancel(ctx))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running[c.way] == nil {
		n.running[c.way] = map[string]*command{}
	}
	n.next++
	c.order = n.next
	n.running[c.way][callID] = c
	return c
}

// Enter implements box.Followed.
func (c *command) Enter(out io.Closer) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.at, _ = out.(*outlet)
}

// Forget implements box.Followed.
func (c *command) Forget() {
	c.n.mu.Lock()
	c.closed = true
	if of := c.n.running[c.way]; of[c.id] == c {
		delete(of, c.id)
		if len(of) == 0 {
			delete(c.n.running, c.way)
		}
	}
	c.n.mu.Unlock()
	if !c.way.operator { // an operator's sandbox ends now, and its connections with it
		c.cut()
	}
}

// Uses implements box.Followed. It waits briefly for connections that end with the command, and cuts the
// others, so that all of the command's network use is reported.
func (c *command) Uses() []box.Use {
	c.n.mu.Lock()
	over, first := c.over, c.over == nil
	if first {
		over = make(chan struct{})
		c.over = over
	}
	c.n.mu.Unlock()
	if first {
		c.settle()
		c.takeStrays()
		close(over)
	}
	<-over
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	uses := slices.Clone(c.uses)
	if c.beyond.Connections > 0 {
		uses = append(uses, c.beyond)
	}
	return uses
}

// takeStrays adds the strays of the command's sandbox to its uses.
func (c *command) takeStrays() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.at != nil {
		c.uses = append(c.uses, c.at.strays.take()...)
	}
}

// settle returns when no use of the command is open, and none can begin.
func (c *command) settle() {
	c.n.mu.Lock()
	at := c.at
	c.n.mu.Unlock()
	if at != nil {
		at.server.CatchUp()
	}
	c.n.mu.Lock()
	c.ending = true
	c.n.mu.Unlock()
	if c.await(settleTime) {
		return
	}
	c.cut()
	if c.await(cutTime) {
		return
	}
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for u := range c.open { // report it now; its end no longer counts
		e := u.known
		e.Outcome, e.Message = egress.Aborted, "it was still open when the command had ended"
		c.finish(u, e)
	}
}

// await waits until no use of the command is open, at most for late. No use begins after that.
func (c *command) await(late time.Duration) bool {
	timer := time.NewTimer(late)
	defer timer.Stop()
	for {
		c.n.mu.Lock()
		if len(c.open) == 0 {
			c.closed = true
			c.n.mu.Unlock()
			return true
		}
		if c.settled == nil {
			c.settled = make(chan struct{})
		}
		settled := c.settled
		c.n.mu.Unlock()
		select {
		case <-settled:
		case <-timer.C:
			c.n.mu.Lock()
			c.closed = true
			c.n.mu.Unlock()
			return false
		}
	}
}

// dialed records a connection to the outside: if the service dies while it is open, that is all that is
// known of it.
func (u *use) dialed(e egress.Event) {
	c := u.c
	e.Outcome, e.Message = egress.Aborted, "the service ended while it was open"
	c.n.mu.Lock()
	u.known = e
	begun, note := c.make(e), c.note
	c.n.mu.Unlock()
	if note != nil {
		note(u.number, begun)
	}
}

// ended reports the end of a use.
func (u *use) ended(e egress.Event) {
	c := u.c
	c.n.mu.Lock()
	made := c.finish(u, e)
	c.n.mu.Unlock()
	if made != nil && c.note != nil {
		c.note(u.number, *made)
	}
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	delete(c.open, u)
	if len(c.open) == 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// finish adds a use to the command's, once. It returns nil if it is none, or was added before. mu is held.
func (c *command) finish(u *use, e egress.Event) *box.Use {
	if u.add == nil {
		return nil
	}
	add := u.add
	u.add = nil
	return add(e)
}

// add adds an event to the command's uses and returns it. For intercepted TLS, only the requests inside
// count. mu is held.
func (c *command) add(e egress.Event) *box.Use {
	if e.Outcome == egress.Opened {
		c.taken--
		return nil
	}
	u := c.make(e)
	c.uses = append(c.uses, u)
	return &u
}

// addSilent is add for a connection, which is a use only if no request came. mu is held.
func (c *command) addSilent(e egress.Event) *box.Use {
	switch {
	case e.Outcome == egress.Opened:
		return nil
	case c.taken >= c.n.most:
		return c.addBeyond(e)
	}
	c.taken++
	return c.add(e)
}

// addBeyond adds an event to the single use for all events beyond the maximum. mu is held.
func (c *command) addBeyond(e egress.Event) *box.Use {
	u := &c.beyond
	if u.Connections == 0 {
		u.Outcome, u.Message, u.Started = string(egress.Limited), c.n.enough().Message, e.Start.UTC()
	}
	u.Connections++
	u.Sent += e.Sent
	u.Received += e.Received
	u.Duration += e.Duration
	return nil
}

// make returns an event as a use, with shared texts. mu is held.
func (c *command) make(e egress.Event) box.Use {
	u := makeUse(e)
	u.Host, u.Rule, u.Message = c.text(u.Host), c.text(u.Rule), c.text(u.Message)
	return u
}

func makeUse(e egress.Event) box.Use {
	return box.Use{
		Host: e.Host, Port: int(e.Port), Rule: shorten(e.Rule, maxRule), Outcome: string(e.Outcome), Credential: e.Credential,
		Message: shorten(e.Message, maxMessage), Connections: 1, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Started: e.Start.UTC(),
	}
}

// text returns the shared copy of a text.
func (c *command) text(s string) string {
	if kept, ok := c.texts[s]; ok {
		return kept
	}
	s = strings.Clone(s) // it may be a part of a request, which it would keep in memory
	c.texts[s] = s
	return s
}

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
