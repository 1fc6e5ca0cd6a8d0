package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// Serve serves the components until ctx ends or one of them fails. Then it stops in order: health says
// NOT_SERVING; HTTP requests and clients' streams end while the components drain; peers' streams are
// cancelled; unary calls get the rest of the grace; background work ends; and the components close in the
// reverse order of their listing.
//
// Serve owns the components and local (which may be nil) from the call on and closes them even when it fails.
// No goroutine of Serve is left when it returns. The caller flushes telemetry after it.
func Serve(ctx context.Context, c Config, tel *telemetry.Telemetry, local *Local, components ...Component) error {
	s := &serving{Config: c, tel: tel, log: tel.Log, local: local, components: components, failed: make(chan error, 1), draining: make(chan struct{})}
	base := context.WithValue(context.WithoutCancel(ctx), drainingKey{}, (<-chan struct{})(s.draining))
	s.clients, s.peers, s.requests, s.background = newScope(base), newScope(base), newScope(base), newScope(base)
	err := s.start() //nolint:contextcheck // the end of ctx begins the drain, which the contexts of start must outlive
	if err == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping", "cause", context.Cause(ctx), "grace", c.Grace)
		case err = <-s.failed:
			s.log.Error("stopping because a part failed", "error", err)
		}
	}
	return errors.Join(err, s.stop()) //nolint:contextcheck // ctx has ended; what ends now has contexts of its own
}

// scope is a context that Serve ends during the drain.
type scope struct {
	context.Context //nolint:containedctx // it lives as long as one run of Serve
	end             context.CancelCauseFunc
}

func newScope(base context.Context) scope {
	ctx, cancel := context.WithCancelCause(base)
	return scope{ctx, cancel}
}

// stopper is a server of gRPC calls: GracefulStop waits for them, Stop cancels them.
type stopper interface {
	GracefulStop()
	Stop()
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// serving is one run of Serve.
type serving struct {
	Config
	tel        *telemetry.Telemetry
	log        *slog.Logger
	local      *Local
	components []Component

	health    *health.Server
	stoppers  []stopper // of gRPC
	http      []*http.Server
	listeners map[string]net.Listener
	files     *certificate.Files

	draining   chan struct{} // closed first
	clients    scope         // parent of the contexts of streaming RPCs on the public face
	peers      scope         // and on the peer face
	requests   scope         // parent of the contexts of HTTP requests
	background scope         // of Run and of the readiness loop

	servers sync.WaitGroup // goroutines that serve
	runs    sync.WaitGroup // goroutines of background
	failed  chan error     // the first failure
}

func (s *serving) start() error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Peer != "" && s.Keys == nil {
		return errors.New("the peer listener has no keys for internal tokens")
	}
	if s.Public != "" && s.Auth == nil {
		return errors.New("the public listener has nothing that knows its callers")
	}
	var err error
	if s.files, err = certificate.Open(s.TLS); err != nil {
		return fmt.Errorf("tls.%w", err)
	}
	if err := s.listen(); err != nil {
		return err
	}
	s.health = health.NewServer()
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING) // until the components have been checked
	s.serveGRPC()
	s.serveHTTP()
	for _, c := range s.components {
		s.runs.Go(func() {
			if err := c.Run(s.background); err != nil && s.background.Err() == nil {
				s.fail(fmt.Errorf("background work of %T: %w", c, err))
			}
		})
	}
	s.runs.Go(s.watchReadiness)
	return nil
}

func (s *serving) fail(err error) {
	select {
	case s.failed <- err:
	default: // one failure is enough to stop
	}
}

// listen binds every address before anything is served, so that a port in use stops the program at once.
func (s *serving) listen() error {
	s.listeners = map[string]net.Listener{}
	for _, f := range s.faces() {
		if f.address == "" {
			continue
		}
		l, err := s.bind(f)
		if err != nil {
			return f.refused(err)
		}
		s.listeners[f.face] = l
		address := l.Addr().String()
		s.log.Info("listening", "face", f.face, "address", address)
		if s.OnListen != nil {
			s.OnListen(f.face, address)
		}
	}
	return nil
}

// refused says which key has the address that cannot be listened on, and what to do.
func (f listenerAddress) refused(err error) error {
	todo := "choose another address"
	if errors.Is(err, syscall.EADDRINUSE) {
		todo = "stop the program that listens there, or choose another address"
	}
	return fmt.Errorf("cannot listen on %s: %w; %s with --%s (port 0: any free port)", f.address, err, todo, f.key)
}

func (s *serving) bind(f listenerAddress) (net.Listener, error) {
	if f.face == "peer" && s.PeerListener != nil {
		return s.PeerListener, nil
	}
	return new(net.ListenConfig).Listen(s.background, "tcp", f.address)
}

func (s *serving) serveGRPC() {
	if l := s.listeners["public"]; l != nil {
		public := s.newGRPC(publicFace(s.Auth), s.clients, s.credentials(false))
		for _, c := range s.components {
			c.RegisterPublic(public)
		}
		s.serveOn(public, l)
	}
	if s.listeners["peer"] == nil && s.local == nil {
		return
	}
	keys := s.Keys
	if keys == nil {
		keys = s.local.Keys
	}
	register := func(r grpc.ServiceRegistrar) {
		for _, c := range s.components {
			c.RegisterPublic(r)
			c.RegisterPeer(r)
		}
	}
	if l := s.listeners["peer"]; l != nil {
		peer := s.newGRPC(peerFace(keys), s.peers, s.credentials(true))
		register(peer)
		s.serveOn(peer, l)
	}
	if s.local != nil {
		unary, streams := peerFace(keys).interceptors(s.log, s.peers, gateOf(s.components), auditing{to: auditorOf(s.components), peers: true})
		s.local.serve(func(r grpc.ServiceRegistrar) { healthv1.RegisterHealthServer(r, s.health); register(r) }, unary, streams)
		s.stoppers = append(s.stoppers, s.local)
	}
}

// credentials returns those of a gRPC listener. A mutual one asks for the caller's certificate, if that is configured.
func (s *serving) credentials(mutual bool) credentials.TransportCredentials {
	if !s.files.Listens() {
		return insecure.NewCredentials()
	}
	return s.files.Credentials(mutual)
}

func (s *serving) newGRPC(f face, streams scope, c credentials.TransportCredentials) *grpc.Server {
	audit := auditing{to: auditorOf(s.components), peers: f.name == "peer"}
	if !audit.peers { // a peer names its client in its own way
		audit.proxies, _ = parseProxies(s.TrustedProxies) // Validate has checked them
	}
	srv := newServer(f, s.log, streams, gateOf(s.components), audit, grpc.Creds(c))
	healthv1.RegisterHealthServer(srv, s.health)
	reflection.Register(srv)
	s.stoppers = append(s.stoppers, srv)
	return srv
}

func (s *serving) serveOn(srv *grpc.Server, l net.Listener) {
	s.servers.Go(func() {
		if err := srv.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.fail(fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err))
		}
	})
}

// stop undoes start, even an incomplete one.
func (s *serving) stop() error {
	deadline := time.Now().Add(s.Grace)
	if s.health != nil {
		s.health.Shutdown()
	}
	close(s.draining)
	drained := s.drain(deadline.Add(-s.Grace / 4))
	s.stopHTTP(deadline)
	s.clients.end(errDraining)
	drained.Wait()
	s.peers.end(errDraining)
	s.stopGRPC(deadline)
	s.servers.Wait()
	s.background.end(errDraining)
	s.runs.Wait()
	var faults []error
	for i := len(s.components) - 1; i >= 0; i-- {
		if err := s.components[i].Close(); err != nil {
			faults = append(faults, fmt.Errorf("close %T: %w", s.components[i], err))
		}
	}
	for _, l := range s.listeners { // servers have closed the listeners that they served
		_ = l.Close()
	}
	if s.local != nil {
		faults = append(faults, s.local.Close())
	}
	return errors.Join(faults...)
}

// drain has the components bring their work to a good place to stop.
func (s *serving) drain(deadline time.Time) *sync.WaitGroup {
	var drained sync.WaitGroup
	if len(s.listeners) == 0 { // the start failed: nothing runs
		return &drained
	}
	ctx, cancel := context.WithDeadline(s.background, deadline)
	for _, c := range s.components {
		if d, ok := c.(Drainer); ok {
			drained.Go(func() { d.Drain(ctx) })
		}
	}
	go func() { drained.Wait(); cancel() }()
	return &drained
}

func (s *serving) stopGRPC(deadline time.Time) {
	force := time.AfterFunc(time.Until(deadline), func() {
		s.log.Warn("requests were still running at the end of the grace period and are cancelled")
		for _, srv := range s.stoppers {
			srv.Stop()
		}
	})
	defer force.Stop()
	var wg sync.WaitGroup
	for _, srv := range s.stoppers {
		wg.Go(srv.GracefulStop)
	}
	wg.Wait()
}
