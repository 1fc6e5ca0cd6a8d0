package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Limits of the HTTP listeners. There is no write timeout: event streams last as long as their sessions.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Interval and time limit of the readiness checks for the health service.
const (
	readyInterval = time.Second
	readyTimeout  = 2 * time.Second
)

func (s *serving) serveHTTP() {
	root := http.NewServeMux()
	var origins []string
	for _, c := range s.components {
		if h, ok := c.(HTTPComponent); ok {
			root.Handle("/", h.Handler())
			origins = append(origins, h.AllowedOrigins()...)
		}
	}
	if l := s.listeners["ops"]; l != nil {
		ops := http.NewServeMux()
		s.registerOps(ops, s.tel.MetricsHandler())
		s.serveHTTPOn(l, false, newHostGuard(s.Config, s.Ops, l, nil, ops)) // probes have no certificates to check
	} else {
		s.registerOps(root, s.guarded(s.tel.MetricsHandler()))
	}
	if l := s.listeners["http"]; l != nil {
		s.serveHTTPOn(l, s.files.Listens(), newHostGuard(s.Config, s.HTTP, l, origins, root))
	}
}

func (s *serving) serveHTTPOn(l net.Listener, encrypted bool, h *hostGuard) {
	srv := &http.Server{
		Handler: bodies{h}, BaseContext: func(net.Listener) context.Context { return s.requests },
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	serve := srv.Serve
	if encrypted {
		srv.TLSConfig = s.files.HTTP()
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	s.http = append(s.http, srv)
	s.servers.Go(func() {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err))
		}
	})
}

// stopHTTP waits for requests until half of the grace is over. Then it ends their contexts, and at the end
// their connections.
func (s *serving) stopHTTP(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(s.requests), deadline)
	defer cancel()
	hurry := time.AfterFunc(time.Until(deadline)/2, func() { s.requests.end(errDraining) })
	defer hurry.Stop()
	var wg sync.WaitGroup
	for _, srv := range s.http {
		wg.Go(func() {
			if err := srv.Shutdown(ctx); err != nil {
				s.log.Warn("HTTP requests were still running at the end of the grace period; their connections are closed")
				_ = srv.Close()
			}
		})
	}
	wg.Wait()
	s.requests.end(errDraining)
}

// metricsRule is what a caller needs for /metrics on the listener for clients.
var metricsRule = access.Rule{Role: principal.RoleOperator, Scope: MetricsScope}

// MetricsScope is the scope of keys that read the metrics.
const MetricsScope = "metrics.read"

// httpStatus are the statuses of the errors of credentials and roles.
var httpStatus = map[codes.Code]int{
	codes.Unauthenticated: http.StatusUnauthorized, codes.PermissionDenied: http.StatusForbidden, codes.Unavailable: http.StatusServiceUnavailable,
	codes.Canceled: http.StatusServiceUnavailable, codes.DeadlineExceeded: http.StatusServiceUnavailable,
}

// guarded lets the operators of the tenant default in: the metrics are those of all tenants.
func (s *serving) guarded(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop, err := s.operator(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuseWith(w, httpStatus[apierr.Code(err)], err)
			return
		}
		defer stop()
		metrics.ServeHTTP(w, r.WithContext(ctx)) //nolint:contextcheck // it is made of the request's
	})
}

// operator returns the context of a request of an operator.
func (s *serving) operator(r *http.Request) (ctx context.Context, stop func(), err error) {
	if s.Auth == nil {
		return nil, nil, apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonRoleRequired, "This listener does not know its callers. The metrics are on the listener of the key ops, once it has an address.")
	}
	if ctx, stop, err = s.Auth.HTTP(r, ""); err != nil {
		return nil, nil, err
	}
	p, _ := principal.From(ctx)
	err = metricsRule.Permit(p)
	if manager := principal.Default().Tenant; err == nil && p.Tenant != manager {
		err = apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonRoleRequired, fmt.Sprintf(
			"The metrics are those of all tenants. They need an operator of the tenant %s, or the listener of the key ops.", manager))
	}
	if err != nil {
		stop()
	}
	return ctx, stop, err
}

// registerOps registers what probes and Prometheus ask for.
func (s *serving) registerOps(mux *http.ServeMux, metrics http.Handler) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.stopping() {
			answer(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		if err := s.ready(r.Context()); err != nil {
			s.log.WarnContext(r.Context(), "not ready", "error", err)
			answer(w, http.StatusServiceUnavailable, notReady(err))
			return
		}
		answer(w, http.StatusOK, strings.Join(append([]string{"ready"}, s.notes()...), "\n"))
	})
	mux.Handle("GET /metrics", metrics)
}

// notReady returns the body of /readyz for an error: its lines that are for clients, or a hint at the log.
func notReady(err error) string {
	var lines NotReadyError
	if errors.As(err, &lines) {
		return "not ready\n" + strings.Join(lines, "\n")
	}
	return "not ready; the log says why"
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n")
}

// ready asks every ReadyChecker.
func (s *serving) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var faults []error
	for _, c := range s.components {
		if r, ok := c.(ReadyChecker); ok {
			if err := r.Ready(ctx); err != nil {
				faults = append(faults, fmt.Errorf("%T: %w", c, err))
			}
		}
	}
	return errors.Join(faults...)
}

// notes asks every Noter.
func (s *serving) notes() (lines []string) {
	for _, c := range s.components {
		if n, ok := c.(Noter); ok {
			lines = append(lines, n.Notes()...)
		}
	}
	return lines
}

// watchReadiness updates the health service, for the server as a whole (the empty name) and for each service.
func (s *serving) watchReadiness() {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	was := error(nil)
	for {
		err := s.ready(s.background)
		if s.stopping() || s.background.Err() != nil {
			return // the services refuse calls by now, and stopping has told the health
		}
		s.setHealth(err)
		if changed(was, err) {
			s.logReadiness(err)
		}
		was = err
		select {
		case <-tick.C:
		case <-s.background.Done():
			return
		}
	}
}

// stopping reports whether the program has begun to stop.
func (s *serving) stopping() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// changed reports whether the log needs a line about readiness.
func changed(was, is error) bool { return cause(was) != cause(is) }

// cause returns what keeps a program from being ready, without numbers: those of ports and times change at every look.
func cause(err error) string {
	if err == nil {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

func (s *serving) logReadiness(err error) {
	if err != nil {
		s.log.Warn("readiness changed", "ready", false, "error", err)
		return
	}
	s.log.Info("readiness changed", "ready", true)
}

func (s *serving) setHealth(err error) {
	status := healthv1.HealthCheckResponse_SERVING
	if err != nil {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	s.health.SetServingStatus("", status)
	for _, srv := range s.stoppers {
		for name := range srv.GetServiceInfo() {
			s.health.SetServingStatus(name, status)
		}
	}
}
