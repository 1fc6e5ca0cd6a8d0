// Package idle holds the open answers of clients that wait.
//
// A waiting answer costs a timer, and one goroutine that reads its connection to see the client leave. A step of the
// answer runs in a goroutine of its own when there is something to write. So that the server's buffers and the deep
// stack of a handler do not wait too, the handler of a quiet HTTP/1.1 answer returns and the connection stays.
package idle

import (
	"context"
	"net/http"
	"sync"
)

// Request is what an answer holds until it ends, which may be after its handler has returned.
type Request struct {
	cancel context.CancelCauseFunc
	unlink func() bool
	// able means that the answer may outlive its handler: it is sent in the chunks of HTTP/1.1.
	able bool

	mu       sync.Mutex
	ends     []func()
	detached bool
}

type requestKey struct{}

// Begin returns the request with a context that ends with the answer, like that of a request. The caller calls Return
// when its handler has returned.
func Begin(r *http.Request) (*http.Request, *Request) {
	q := &Request{able: r.ProtoMajor == 1 && r.ProtoMinor >= 1 && r.Method != http.MethodHead}
	outer := r.Context()
	ctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(outer), requestKey{}, q))
	q.cancel = cancel
	q.unlink = context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return r.WithContext(ctx), q
}

// Return ends what the request holds, unless its answer outlives the handler.
func (q *Request) Return() {
	q.mu.Lock()
	detached := q.detached
	q.mu.Unlock()
	if !detached {
		q.end()
	}
}

// detach makes the caller end what the request holds.
func (q *Request) detach() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.detached = true
	q.unlink()
}

// end ends what the request holds, the latest first.
func (q *Request) end() {
	q.unlink()
	q.mu.Lock()
	ends := q.ends
	q.ends = nil
	q.mu.Unlock()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	q.cancel(nil)
}

func requestOf(ctx context.Context) *Request {
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}

// Announce tells the client of an answer that may outlive its handler that the connection ends with the answer. Without
// that, a client may send its next request on a connection that is being closed.
func Announce(ctx context.Context, h http.Header) {
	if q := requestOf(ctx); q != nil && q.able {
		h.Set("Connection", "close")
	}
}

// Until has f called once, when the answer of a request ends. A handler defers the function that Until returns: it
// calls f for a request that has not passed Begin.
func Until(ctx context.Context, f func()) (deferred func()) {
	q := requestOf(ctx)
	if q == nil {
		return f
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ends = append(q.ends, f)
	return func() {}
}
