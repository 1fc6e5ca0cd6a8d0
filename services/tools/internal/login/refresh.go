package login

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// resourceClient returns a client that names the server in requests for tokens. The library names it only when it
// exchanges a code.
func (l *Logins) resourceClient(resource string) *http.Client {
	c := *l.Client
	c.Transport = naming{c.Transport, resource}
	return &c
}

type naming struct {
	base     http.RoundTripper
	resource string
}

// RoundTrip adds the parameter resource to a form.
func (n naming) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	_ = q.Body.Close()
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	form.Set("resource", n.resource)
	body = []byte(form.Encode())
	q = q.Clone(q.Context())
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	q.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return n.base.RoundTrip(q)
}

// locks lets one goroutine at a time work with a token.
type locks struct {
	mu   sync.Mutex
	held map[store.TokenKey]*lock
}

type lock struct {
	slot  chan struct{}
	users int
}

// acquire waits for the lock of a token. The caller releases it.
func (l *locks) acquire(ctx context.Context, k store.TokenKey) (release func(), _ error) {
	l.mu.Lock()
	x := l.held[k]
	if x == nil {
		x = &lock{slot: make(chan struct{}, 1)}
		l.held[k] = x
	}
	x.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(l.held, k)
		}
	}
	select {
	case x.slot <- struct{}{}:
		return func() { <-x.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
