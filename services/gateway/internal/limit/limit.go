// Package limit bounds the use by clients: concurrent streams of an address and of a user, and requests per second of an
// address. For IPv6 the /64 network counts as the address, because one machine has all of it.
package limit

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Client is the key under which a client is counted.
type Client struct {
	Address string
	User    string // with its tenant; empty before the credential is known
}

// Of returns the client of a request.
func Of(r *http.Request) Client { return client(r.Context(), r.RemoteAddr) }

// Caller is Of for a gRPC call.
func Caller(ctx context.Context) Client { return client(ctx, rpc.Client(ctx)) }

func client(ctx context.Context, address string) Client {
	c := Client{Address: network(address)}
	if p, ok := principal.From(ctx); ok {
		c.User = p.Tenant + "/" + p.User
	}
	return c
}

// network returns the address or network of a client, which is an address with or without a port.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if ap, withPort := netip.ParseAddrPort(address); withPort == nil {
		ip, err = ap.Addr(), nil
	}
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.String()
		}
	}
	return ip.String()
}

// Bounds are the most open streams; 0 is no bound.
type Bounds struct{ Total, Address, User int }

// Streams bounds the open streams. It is safe for concurrent use.
type Streams struct {
	most Bounds

	mu   sync.Mutex
	open int
	by   map[Client]int // each key has an address or a user
}

// NewStreams returns a Streams with no open stream.
func NewStreams(most Bounds) *Streams { return &Streams{most: most, by: map[Client]int{}} }

// Acquire counts a stream of a client until release is called, once. Over a limit it returns an error for the
// client.
func (s *Streams) Acquire(c Client) (release func(), err error) {
	address, user := Client{Address: c.Address}, Client{User: c.User}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.most.User > 0 && c.User != "" && s.by[user] >= s.most.User:
		return nil, problem.TooManyStreams(problem.OfUser, s.most.User)
	case s.most.Address > 0 && s.by[address] >= s.most.Address:
		return nil, problem.TooManyStreams(problem.OfAddress, s.most.Address)
	case s.most.Total > 0 && s.open >= s.most.Total:
		return nil, problem.TooManyStreams(problem.OfServer, s.most.Total)
	}
	counted := []Client{address}
	if c.User != "" {
		counted = append(counted, user)
	}
	s.open++
	for _, key := range counted {
		s.by[key]++
	}
	return func() { s.release(counted) }, nil
}

func (s *Streams) release(counted []Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	for _, key := range counted {
		if s.by[key]--; s.by[key] == 0 {
			delete(s.by, key)
		}
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
func (r *Rate) Allow(c Client) error {
	if r == nil {
		return nil
	}
	now := r.now()
	reservation := r.limiter(c.Address, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return problem.TooManyRequests(wait)
}

// Registrar returns a registrar that registers services with next, whose calls count as requests of their clients.
func (r *Rate) Registrar(next grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	if r == nil {
		return next
	}
	return registrar{next, r}
}

type registrar struct {
	grpc.ServiceRegistrar
	rate *Rate
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	counted := *desc
	counted.Methods, counted.Streams = slices.Clone(desc.Methods), slices.Clone(desc.Streams)
	for i, m := range desc.Methods {
		counted.Methods[i].Handler = func(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(srv, ctx, dec, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				within := func(ctx context.Context, req any) (any, error) {
					if err := r.rate.Allow(Caller(ctx)); err != nil {
						return nil, err
					}
					return next(ctx, req)
				}
				if around == nil {
					return within(ctx, req)
				}
				return around(ctx, req, info, within)
			})
		}
	}
	for i, s := range desc.Streams {
		counted.Streams[i].Handler = func(srv any, st grpc.ServerStream) error {
			if err := r.rate.Allow(Caller(st.Context())); err != nil {
				return err
			}
			return s.Handler(srv, st)
		}
	}
	r.ServiceRegistrar.RegisterService(&counted, impl)
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
