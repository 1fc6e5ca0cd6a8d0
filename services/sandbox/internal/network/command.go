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

// command is one that runs.
type command struct {
	n     *Network
	way   way
	id    string
	order int64                // of its start
	note  func(int64, box.Use) // called for each use, with its number; may be nil
	ctx   context.Context      //nolint:containedctx // of its call: spans of its connections hang below
	cut   context.CancelFunc   // ends ctx, and with it the connections
	texts map[string]string    // those of uses, which have them in common
	over  chan struct{}        // closed when all uses are known; nil: not asked for yet

	// Guarded by the network's mu, as over and texts are.
	at      *outlet           // its sandbox's; nil before that is known
	ending  bool              // its processes have ended, and what they began is known
	closed  bool              // nothing of it can begin any more
	open    map[*use]struct{} // what has not ended
	settled chan struct{}     // if not nil, closed when open is empty
	begun   int64             // uses that began
	taken   int               // uses, and those that are open and will be one
	uses    []box.Use
	beyond  box.Use // all that were refused because there may be no more
}

// use is what is not over of a command: a request, a tunnel, or a connection that waits for one.
type use struct {
	c      *command
	number int64
	add    func(egress.Event) *box.Use // makes it one of the command's uses; nil once it is
	known  egress.Event                // what is told of it if its end does not come
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
	if !c.way.operator { // whose sandbox ends now, and its connections with it
		c.cut()
	}
}

// Uses implements box.Followed. It waits a moment for connections that end with the command,
// and cuts the others off, so that nothing of it goes on that is not told.
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

// takeStrays has the command tell of what was refused in its sandbox and is no command's.
func (c *command) takeStrays() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.at != nil {
		c.uses = append(c.uses, c.at.strays.take()...)
	}
}

// settle returns when nothing of the command is open, and nothing can begin.
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
	for u := range c.open { // whatever holds it up: it is told, and its end counts no more
		e := u.known
		e.Outcome, e.Message = egress.Aborted, "it was still open when the command had ended"
		c.finish(u, e)
	}
}

// await waits until nothing of the command is open, but not for longer than late. Nothing of it
// begins after that.
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

// dialed notes that a connection to the outside is there: should the service end while it is
// open, that is all that is known of it.
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

// ended has a use told.
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

// finish makes a use one of the command's, once. Nil: it is none, or was before. mu is held.
func (c *command) finish(u *use, e egress.Event) *box.Use {
	if u.add == nil {
		return nil
	}
	add := u.add
	u.add = nil
	return add(e)
}

// add makes an event one of the command's uses, which it returns. Of TLS that was opened, the
// requests inside are. mu is held.
func (c *command) add(e egress.Event) *box.Use {
	if e.Outcome == egress.Opened {
		c.taken--
		return nil
	}
	u := c.make(e)
	c.uses = append(c.uses, u)
	return &u
}

// addSilent is add for a connection, which is a use only when no request came. mu is held.
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

// addBeyond adds an event to those for which there was no room, which are one use. mu is held.
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

// make is an event as it is told, with texts that are kept once. mu is held.
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

// text is a text that is kept once.
func (c *command) text(s string) string {
	if kept, ok := c.texts[s]; ok {
		return kept
	}
	s = strings.Clone(s) // it may be a part of a request, which is kept with it
	c.texts[s] = s
	return s
}

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
