package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const (
	// maxWatched bounds the resources that the clients of a scope watch.
	maxWatched = 100
	// longPause is the longest pause before a subscription is made again.
	longPause = 30 * time.Second
)

// subscriptions are the resources that the clients of a scope watch: one stream to the session service for each, which
// ends with the last client. The zero value is ready.
type subscriptions struct {
	mu      sync.Mutex
	closed  bool
	watched map[string]*watched // by address
	clients map[*sdk.ServerSession]bool
	running sync.WaitGroup
}

// watched is a resource that clients watch.
type watched struct {
	stop     context.CancelFunc
	clients  map[*sdk.ServerSession]bool
	accepted chan struct{} // closed when the server has accepted or refused it
	refused  error         // after that
}

// subscribe begins to watch a resource for a client, and returns when its server has accepted that.
func (sc *scope) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	server := sc.serverOf(uri)
	if server == "" {
		return sdk.ResourceNotFoundError(uri)
	}
	w, err := sc.join(caller(ctx, req.Extra), req.Session, server, uri)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, sc.s.Timeout)
	defer cancel()
	select {
	case <-w.accepted:
		err = w.refused
	case <-waiting.Done():
		err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The server of the resource did not answer in time. Try again."}
	}
	if err != nil {
		sc.leave(req.Session, uri)
	}
	return err
}

// unsubscribe ends it.
func (sc *scope) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	sc.leave(req.Session, req.Params.URI)
	return nil
}

// join adds a client to those that watch a resource. The first one begins the stream.
func (sc *scope) join(ctx context.Context, client *sdk.ServerSession, server, uri string) (*watched, error) {
	s := &sc.subscriptions
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[uri]
	switch {
	case s.closed:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The server is stopping. Subscribe again."}
	case w == nil && len(s.watched) >= maxWatched:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("Clients of a session may watch %d resources at a time. Unsubscribe from one first.", maxWatched)}
	case w == nil:
		if s.watched == nil {
			s.watched, s.clients = map[string]*watched{}, map[*sdk.ServerSession]bool{}
		}
		// The stream outlives the request, and has its caller.
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		w = &watched{stop: stop, clients: map[*sdk.ServerSession]bool{}, accepted: make(chan struct{})}
		s.watched[uri] = w
		s.running.Go(func() { sc.follow(watching, w, server, uri) })
	}
	w.clients[client] = true
	if !s.clients[client] {
		s.clients[client] = true
		s.running.Go(func() { // a client that goes away does not unsubscribe
			_ = client.Wait() // how it ended does not matter
			sc.left(client)
		})
	}
	return w, nil
}

// leave removes a client from those that watch a resource. The last one ends the stream.
func (sc *scope) leave(client *sdk.ServerSession, uri string) {
	s := &sc.subscriptions
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(client, uri)
}

func (s *subscriptions) leave(client *sdk.ServerSession, uri string) {
	w := s.watched[uri]
	if w == nil {
		return
	}
	if delete(w.clients, client); len(w.clients) == 0 {
		w.stop()
		delete(s.watched, uri)
	}
}

// forget ends a watched resource whose stream has ended.
func (s *subscriptions) forget(w *watched, uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.stop(); s.watched[uri] == w {
		delete(s.watched, uri)
	}
}

// left removes a client that is gone.
func (sc *scope) left(client *sdk.ServerSession) {
	s := &sc.subscriptions
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, client)
	for uri := range s.watched {
		s.leave(client, uri)
	}
}

// end ends all of them. The sessions of the protocol have ended.
func (s *subscriptions) end() {
	s.mu.Lock()
	s.closed = true
	for uri, w := range s.watched {
		w.stop()
		delete(s.watched, uri)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// follow tells clients of the changes of a resource, until ctx ends. A stream that breaks is made again, after which
// the resource counts as changed. When that is refused for good, clients are told a last time: they read the resource
// and learn why.
func (sc *scope) follow(ctx context.Context, w *watched, server, uri string) {
	defer sc.subscriptions.forget(w, uri)
	accepted := false
	for pause := backoff; ; pause = min(2*pause, longPause) {
		stream, err := sc.s.servers.WatchMcpResource(ctx, &sessionv1.WatchMcpResourceRequest{Name: sc.name() + "/mcp/" + server, Uri: uri})
		for err == nil {
			if _, err = stream.Recv(); err != nil {
				break
			}
			if pause = backoff; accepted {
				sc.changed(ctx, uri)
			} else {
				accepted = true
				close(w.accepted)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case !accepted && !passes(err):
			w.refused = fault(err)
			close(w.accepted)
			return
		case accepted && !passes(err) && apierr.Code(err) != codes.FailedPrecondition:
			sc.s.log.InfoContext(ctx, "a resource of an MCP server is watched no more", "session", sc.name(), "server", server, "error", err)
			sc.changed(ctx, uri)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (sc *scope) changed(ctx context.Context, uri string) {
	// A client that cannot be told has left, which ends its subscription in another place.
	_ = sc.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// serverOf returns the server that has a resource: the one that lists it, or else that whose template fits; "": none.
func (sc *scope) serverOf(uri string) string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if listed, ok := sc.parts["resource "+uri]; ok {
		return listed.server
	}
	found := ""
	for key, p := range sc.parts {
		text, ok := strings.CutPrefix(key, "template ")
		if !ok || found != "" && found < p.server {
			continue
		}
		if t, err := uritemplate.New(text); err == nil && t.Regexp().MatchString(uri) {
			found = p.server
		}
	}
	return found
}
