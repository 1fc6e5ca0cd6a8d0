package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// How often the credential of an open stream is checked. What the check finds may be remembered for keyTime, so a stream
// outlives its credential by at most the sum of both.
const (
	watchTime = 2 * time.Second
	awayTime  = 10 * time.Second // after a check that was not possible
	checkTime = 4 * time.Second  // bounds a check
)

// errChanged ends a stream whose caller may no longer do the same as when the stream began.
var errChanged = apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonCredentialChanged,
	"What this credential may do has changed since the stream began. Connect again, and go on from where it ended.", apierr.RetryAfter(time.Second))

// endError is the cause of a context that ended with its credential.
type endError struct{ err error }

// Error implements error.
func (e *endError) Error() string { return e.err.Error() }

// Ended returns the error for a caller whose credential was refused, or changed, while its stream was open. It is nil
// while ctx goes on, and after every other end.
func Ended(ctx context.Context) error {
	if end := (*endError)(nil); errors.As(context.Cause(ctx), &end) {
		return end.err
	}
	return nil
}

// watch returns a context that ends when a credential is refused, or does not stand for p any more. Ended has the
// error then. The caller calls stop, which waits for the last check.
//
// The end of a token does not cut a stream, but the end of its user does.
func (a *Authenticator) watch(ctx context.Context, credential string, p principal.Principal) (_ context.Context, stop func()) {
	open := credential == "" && a.mode == Auto // until the first key exists
	if credential == "" && !open {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watching{Authenticator: a, credential: credential, principal: p, cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = time.AfterFunc(watchTime, func() { w.look(ctx) })
	return ctx, w.stop
}

// watching checks the credential of one open stream. Between its checks it is a timer and no goroutine, because many
// streams are open and idle.
type watching struct {
	*Authenticator
	credential string
	principal  principal.Principal
	cancel     context.CancelCauseFunc

	mu   sync.Mutex // held during a check
	next *time.Timer
}

// look checks the credential, and plans the next check unless the stream is over.
func (w *watching) look(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	wait := watchTime
	now, err := w.check(ctx, w.credential, w.principal)
	switch {
	case apierr.Code(err) == codes.Unauthenticated:
		w.cancel(&endError{err})
	case err != nil: // it cannot be checked now, which changes nothing
		wait = awayTime
	case !same(now, w.principal):
		w.cancel(&endError{errChanged})
	}
	if ctx.Err() == nil {
		w.next.Reset(wait)
	}
}

// stop ends the context, and waits for a check that runs.
func (w *watching) stop() {
	w.cancel(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next.Stop()
}

func (a *Authenticator) check(ctx context.Context, credential string, p principal.Principal) (principal.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if credential != "" && !strings.HasPrefix(credential, KeyPrefix) {
		return a.bounded(ctx, p)
	}
	return a.Authenticate(ctx, credential)
}

func same(p, q principal.Principal) bool {
	return p.Tenant == q.Tenant && p.User == q.User && p.Role == q.Role && p.Credential == q.Credential && slices.Equal(p.Scopes, q.Scopes)
}
