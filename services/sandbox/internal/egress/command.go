package egress

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// command is a running command.
type command struct {
	n      *Network
	way    way
	id     string
	order  int64              // of its start
	ctx    context.Context    //nolint:containedctx // of its call: the parent of its connections' spans
	cut    context.CancelFunc // ends ctx, and with it the connections
	settle sync.Once

	// Guarded by the network's mu.
	at     *outlet       // of its sandbox; nil until known
	closed bool          // no use of it can begin any more
	open   int           // open uses
	idle   chan struct{} // if not nil, closed when open is zero
	taken  int           // uses, and open ones that will become one
	uses   []box.Use
	beyond box.Use // all that were refused beyond the maximum number
}

// Follow implements box.Network.
func (n *Network) Follow(ctx context.Context, s box.Sandbox, callID string) box.Followed {
	c := &command{n: n, way: wayOf(s), id: callID}
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
// others.
func (c *command) Uses() []box.Use {
	c.settle.Do(c.end)
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	uses := slices.Clone(c.uses)
	if c.beyond.Connections > 0 {
		uses = append(uses, c.beyond)
	}
	return uses
}

// end lets no use of the command begin any more, and ends the open ones.
func (c *command) end() {
	c.n.mu.Lock()
	c.closed = true
	idle := make(chan struct{})
	if c.open == 0 {
		close(idle)
	} else {
		c.idle = idle
	}
	c.n.mu.Unlock()
	cut := time.AfterFunc(settleTime, c.cut)
	defer cut.Stop()
	late := time.NewTimer(settleTime + cutTime)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
		c.n.log.Error("connections of a command do not end: they are not reported with it", "tenant", c.way.Tenant, "session", c.way.Session, "call_id", c.id)
	}
}

// ended counts the end of a use.
func (c *command) ended(add func(Event), e Event) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	add(e)
	if c.open--; c.open == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// add adds an event to the command's uses. For intercepted TLS, only the requests inside count. mu is held.
func (c *command) add(e Event) {
	if e.Outcome == Opened {
		c.taken--
		return
	}
	c.uses = append(c.uses, box.Use{
		Host: strings.Clone(e.Host), // it may be a part of a request, which it would keep in memory
		Port: int(e.Port), Rule: shorten(e.Rule, maxUseRule), Outcome: string(e.Outcome), Credential: e.Credential,
		Message: shorten(e.Message, maxUseMessage), Connections: 1, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Started: e.Start.UTC(),
	})
}

// addBeyond adds an event to the single use for all events beyond the maximum. mu is held.
func (c *command) addBeyond(e Event) {
	u := &c.beyond
	if u.Connections == 0 {
		u.Outcome, u.Message, u.Started = string(Limited), c.n.enough().Message, e.Start.UTC()
	}
	u.Connections++
	u.Sent += e.Sent
	u.Received += e.Received
	u.Duration += e.Duration
}

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
