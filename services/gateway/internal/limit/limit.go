// Package limit bounds the use by clients: concurrent streams and requests per second. A client is an
// address; for IPv6 it is the /64 network, because one machine has all of it.
package limit

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// Client returns the key under which a request's client is counted.
func Client(r *http.Request) string { return client(r.RemoteAddr) }

// Peer is Client for a gRPC call.
func Peer(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	return client(p.Addr.String())
}

func client(address string) string {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.String()
		}
	}
	return ip.String()
}

// Streams bounds the open streams of one client and in total. It is safe for concurrent use.
type Streams struct {
	total, own int

	mu   sync.Mutex
	open int
	by   map[string]int
}

// NewStreams allows total streams, and own of one client; 0 means no limit.
func NewStreams(total, own int) *Streams {
	return &Streams{total: total, own: own, by: map[string]int{}}
}

// Acquire counts a stream of a client until release is called, once. Over a limit it returns an error for the
// client.
func (s *Streams) Acquire(client string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.own > 0 && s.by[client] >= s.own:
		return nil, problem.TooManyStreams(s.own, true)
	case s.total > 0 && s.open >= s.total:
		return nil, problem.TooManyStreams(s.total, false)
	}
	s.open++
	s.by[client]++
	return func() { s.release(client) }, nil
}

func (s *Streams) release(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.by[client]--; s.by[client] == 0 {
		delete(s.by, client)
	}
}

// maxClients bounds the memory for clients with few requests.
const maxClients = 16384

// sweepInterval bounds the cost of the search for quiet clients.
const sweepInterval = time.Second

// Rate bounds the requests of each client. It is safe for concurrent use.
type Rate struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu       sync.Mutex
	clients  map[string]*rate.Limiter
	overflow *rate.Limiter
	swept    time.Time // time of the last search for quiet clients
}

// NewRate allows each client perSecond requests per second, in bursts of burst. With 0 it returns nil, which
// means no limit.
func NewRate(perSecond float64, burst int) *Rate {
	if perSecond <= 0 {
		return nil
	}
	l := rate.Limit(perSecond)
	return &Rate{limit: l, burst: burst, now: time.Now, clients: map[string]*rate.Limiter{}, overflow: rate.NewLimiter(l, burst)}
}

// Allow counts a request of a client, or returns an error for it that says when to retry. A nil Rate allows
// all.
func (r *Rate) Allow(client string) error {
	if r == nil {
		return nil
	}
	now := r.now()
	reservation := r.limiter(client, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return problem.TooManyRequests(wait)
}

func (r *Rate) limiter(client string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.clients[client]; ok {
		return l
	}
	if len(r.clients) >= maxClients && now.Sub(r.swept) >= sweepInterval {
		r.forget(now)
	}
	if len(r.clients) >= maxClients {
		// There are more busy clients than are counted separately: the others share one allowance until some
		// are quiet.
		return r.overflow
	}
	l := rate.NewLimiter(r.limit, r.burst)
	r.clients[client] = l
	return l
}

// forget drops the clients with their whole allowance: they are like new ones.
func (r *Rate) forget(now time.Time) {
	r.swept = now
	for c, l := range r.clients {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.clients, c)
		}
	}
}
