// Package mcp has the tools of servers of the Model Context Protocol.
//
// A Pool keeps one connection to a server for each user of a tenant, and looks at a
// server's list of tools when it connects, when the server says that the list has
// changed, and when the list has become old. A connection that breaks is made again,
// with growing pauses, for as long as it is used. Calls go through the engine like those
// of any tool: this package finds the tool and runs it.
//
// What a server says of itself is not trusted. A response that breaks never repeats a
// call: the end of that call is not known.
package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// Config configures a Pool.
type Config struct {
	Log *slog.Logger
	// Execs runs servers that are commands.
	Execs sandboxv1.ExecServiceClient
	// Version is this program's, as servers see it.
	Version string
	// Connections bounds how many connections there are at a time.
	Connections int
	// Start is how long a server may take until its tools are known.
	Start time.Duration
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// Operator has the operator's servers, by name.
	Operator []*commonv1.McpServer
	// Private lists the addresses, besides public ones, at which users' servers may be.
	Private []netip.Prefix
	// Tokens has the tokens of users; nil: there are none.
	Tokens Tokens
}

// Caller is the session for which servers are used, and its acting user.
type Caller struct {
	User string
	Ref  store.Ref
}

// Pool has the connections to servers. It is safe for concurrent use.
type Pool struct {
	Config
	web *web

	mu     sync.Mutex
	links  map[string]*link
	closed bool
	wg     sync.WaitGroup
}

// NewPool returns a pool without connections.
func NewPool(c Config) *Pool {
	return &Pool{Config: c, web: newWeb(c.Private), links: map[string]*link{}}
}

// Close ends all connections and waits for their goroutines.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.links {
		l.stop(errClosing)
	}
	p.mu.Unlock()
	p.wg.Wait()
	p.web.close()
}

var (
	errClosing = errors.New("the tools service is stopping")
	errGone    = errors.New("the session was deleted")
	errFull    = errors.New("the tools service has as many connections to MCP servers as it may; try again later")
)

// key identifies a connection: another user's server is another one, even at the same
// address, because it gets other credentials and may answer differently.
func key(c Caller, s offer) string {
	of := &commonv1.McpServer{Name: s.GetName(), Transport: s.GetTransport(), Trusted: s.GetTrusted()}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(of)
	if err != nil { // a server that came in a request can be encoded
		b = []byte(err.Error())
	}
	h := sha256.New()
	for _, part := range []string{c.Ref.Tenant, c.User, string(b), strconv.FormatBool(s.operator)} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	if s.GetStdio() != nil { // it runs in one place of one session
		fmt.Fprintf(h, "%s %s %d", c.Ref.Session, c.Ref.Node, c.Ref.Generation)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// link returns the connection to a server, and makes one if there is none. The caller
// releases it.
func (p *Pool) link(ctx context.Context, c Caller, s offer) (*link, error) {
	k := key(c, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosing
	}
	if l := p.links[k]; l != nil {
		l.hold(c)
		return l, nil
	}
	if len(p.links) >= p.Connections && !p.evict() {
		return nil, errFull
	}
	l := newLink(ctx, p, k, c, s)
	l.hold(c)
	p.links[k] = l
	p.wg.Go(l.run)
	return l, nil
}

// evict ends the connection that was unused for the longest time. It is called with the
// lock.
func (p *Pool) evict() bool {
	var oldest *link
	var since time.Time
	for _, l := range p.links {
		if used, free := l.lastUse(); free && (oldest == nil || used.Before(since)) {
			oldest, since = l, used
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.links, oldest.key)
	oldest.stop(errIdle)
	return true
}

// Forget ends the servers in the sandbox of a session that is gone, and waits for their
// end.
func (p *Pool) Forget(tenant, session string) {
	p.mu.Lock()
	var all []*link
	for _, l := range p.links {
		if ref := l.first.Ref; l.server.GetStdio() != nil && ref.Tenant == tenant && ref.Session == session {
			delete(p.links, l.key)
			l.stop(errGone)
			all = append(all, l)
		}
	}
	p.mu.Unlock()
	for _, l := range all {
		<-l.gone
	}
}

// drop removes a connection that was unused for the idle time, or that has ended. It
// reports whether the connection is gone.
func (p *Pool) drop(l *link, idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	used, free := l.lastUse()
	if idle > 0 && (!free || time.Since(used) < idle) {
		return false
	}
	if p.links[l.key] == l {
		delete(p.links, l.key)
	}
	return true
}
