package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	over := make(chan struct{})
	// Most calls end before the first check. They need no goroutine.
	first := time.AfterFunc(watchTime, func() {
		defer close(over)
		if err := a.await(ctx, credential, p); err != nil {
			cancel(&endError{err})
		}
	})
	return ctx, func() {
		cancel(nil)
		if !first.Stop() {
			<-over
		}
	}
}

// await checks a credential until it is refused, does not stand for p any more, or ctx ends, for which it returns nil.
func (a *Authenticator) await(ctx context.Context, credential string, p principal.Principal) error {
	for {
		wait := watchTime
		now, err := a.check(ctx, credential, p)
		switch {
		case apierr.Code(err) == codes.Unauthenticated:
			return err
		case err != nil: // it cannot be checked now, which changes nothing
			wait = awayTime
		case !same(now, p):
			return errChanged
		}
		next := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-next.C:
		}
	}
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
