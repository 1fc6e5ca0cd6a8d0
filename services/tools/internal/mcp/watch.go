package mcp

import (
	"context"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watches are the subscriptions of a connection to resources. The zero value is ready.
type watches struct {
	// asking is held during the requests, so that the last of an address that leaves does not end the subscription of
	// one that comes. Each takes askTimeout at most.
	asking sync.Mutex

	mu   sync.Mutex
	ears map[string]map[chan struct{}]bool // by address
}

// add returns a channel that gets a value when the resource may have changed.
func (w *watches) add(uri string) chan struct{} {
	ear := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ears == nil {
		w.ears = map[string]map[chan struct{}]bool{}
	}
	if w.ears[uri] == nil {
		w.ears[uri] = map[chan struct{}]bool{}
	}
	w.ears[uri][ear] = true
	return ear
}

// remove reports whether the address has no other ear.
func (w *watches) remove(uri string, ear chan struct{}) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ears[uri], ear)
	if last = len(w.ears[uri]) == 0; last {
		delete(w.ears, uri)
	}
	return last
}

// updated tells those who watch a resource, or one that contains it.
func (w *watches) updated(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for watched, ears := range w.ears {
		if uri != watched && !strings.HasPrefix(uri, strings.TrimSuffix(watched, "/")+"/") {
			continue
		}
		for ear := range ears {
			select {
			case ear <- struct{}{}:
			default: // it has not read the last change yet
			}
		}
	}
}

// Watch subscribes to a resource until ctx ends. It calls changed when the server has accepted the subscription, and
// whenever the resource may have changed. A connection that was made again has a new subscription, and what happened
// between the two is not known.
func (p *Pool) Watch(ctx context.Context, t Target, uri string, changed func() error) error {
	l, _, err := p.reach(ctx, t)
	if err != nil {
		return err
	}
	defer l.release()
	ear := l.watches.add(uri)
	defer l.unwatch(ctx, uri, ear)
	for on := (*mcp.ClientSession)(nil); ; {
		v, next := l.look()
		tell := false
		if v.state == connected && v.session != on {
			if err := l.subscribe(ctx, v.session, uri); err != nil {
				if now, _ := l.look(); now.session == v.session {
					return err
				}
				continue // the connection was lost meanwhile
			}
			on, tell = v.session, true
		}
		if !tell {
			select {
			case <-ear:
				tell = true
			case <-next:
			case <-l.gone:
				v, _ := l.look()
				return &AwayError{t.Name, v.message()}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if tell {
			if err := changed(); err != nil {
				return err
			}
		}
	}
}

// subscribe subscribes over a session of the protocol. To repeat it changes nothing.
func (l *link) subscribe(ctx context.Context, session *mcp.ClientSession, uri string) error {
	init := session.InitializeResult()
	if init == nil || init.Capabilities == nil || init.Capabilities.Resources == nil || !init.Capabilities.Resources.Subscribe {
		return &RefusedError{l.server.GetName(), "it takes no subscriptions to resources", true}
	}
	l.watches.asking.Lock()
	defer l.watches.asking.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
	defer cancel()
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		return l.faultOf(ctx, err)
	}
	return nil
}

// unwatch ends a subscription that no other caller has.
func (l *link) unwatch(ctx context.Context, uri string, ear chan struct{}) {
	l.watches.asking.Lock()
	defer l.watches.asking.Unlock()
	v, _ := l.look()
	if !l.watches.remove(uri, ear) || v.session == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), askTimeout, errSilent)
	defer cancel()
	// A server that is away has forgotten it; another one may send what no caller hears.
	_ = v.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
}
