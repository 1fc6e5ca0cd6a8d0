package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// holder is what one key, and a call without one, may do.
type holder struct {
	mu    sync.Mutex
	is    principal.Principal
	fail  error
	hangs bool           // an answer takes until the caller gives up
	most  principal.Role // of every user
	asked int            // about users
}

func (h *holder) set(change func(h *holder)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *holder) ResolveKey(ctx context.Context, _ []byte) (Resolved, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hangs {
		<-ctx.Done()
		return Resolved{}, ctx.Err()
	}
	return Resolved{Principal: h.is}, h.fail
}

func (h *holder) MostRole(context.Context, string, string) (principal.Role, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.most, h.fail
}

func newHolder() *holder {
	return &holder{is: principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser, Scopes: []string{"sessions.read"}, Credential: "keys/k"}}
}

// longest is how long a stream may outlive its credential.
const longest = keyTime + watchTime

func TestAStreamEndsWithItsCredential(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		change func(h *holder)
		want   string // the reason of the end; empty: the stream goes on
		code   codes.Code
	}{
		"a refused key":             {good, func(h *holder) { h.fail = ErrRefused }, apierr.ReasonCredentialInvalid, codes.Unauthenticated},
		"a first key":               {nil, func(h *holder) { h.fail = ErrRefused }, apierr.ReasonCredentialMissing, codes.Unauthenticated},
		"another role":              {good, func(h *holder) { h.is.Role = principal.RoleViewer }, apierr.ReasonCredentialChanged, codes.Unavailable},
		"other scopes":              {good, func(h *holder) { h.is.Scopes = []string{"users.read"} }, apierr.ReasonCredentialChanged, codes.Unavailable},
		"another user":              {good, func(h *holder) { h.is.User = "bob" }, apierr.ReasonCredentialChanged, codes.Unavailable},
		"the same in another slice": {good, func(h *holder) { h.is.Scopes = slices.Clone(h.is.Scopes) }, "", codes.OK},
		"nothing that can answer":   {good, func(h *holder) { h.fail = errors.New("the database is away") }, "", codes.OK},
		"an answer that hangs":      {good, func(h *holder) { h.hangs = true }, "", codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
				h := newHolder()
				a, _ := newAuthenticator(t, Config{}, h)
				ctx, stop := enter(t, a, c.header)
				defer stop()
				time.Sleep(time.Minute + time.Second) //nolint:forbidigo // the bubble's clock
				if err := ctx.Err(); err != nil {
					t.Fatalf("a stream whose credential is valid ends: %v", err)
				}
				h.set(c.change)
				time.Sleep(longest) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if err := Ended(ctx); apierr.Reason(err) != c.want || apierr.Code(err) != c.code || (ctx.Err() != nil) != (c.want != "") {
					t.Errorf("it ends with %v, %v", ctx.Err(), err)
				}
			})
		})
	}
}

var good = http.Header{"Authorization": {"Bearer fl_good"}}

func enter(t *testing.T, a *Authenticator, header http.Header) (ctx context.Context, stop func()) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header = header
	ctx, stop, err := a.HTTP(r, "")
	if err != nil {
		t.Fatal(err)
	}
	return ctx, stop
}

func TestAKeyThatCouldNotBeCheckedIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHolder()
		a, _ := newAuthenticator(t, Config{}, h)
		ctx, stop := enter(t, a, good)
		defer stop()
		h.set(func(h *holder) { h.fail = errors.New("the database is away") })
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock
		if ctx.Err() != nil {
			t.Fatalf("the stream ends: %v", context.Cause(ctx))
		}
		h.set(func(h *holder) { h.fail = ErrRefused })
		time.Sleep(awayTime) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if err := Ended(ctx); apierr.Reason(err) != apierr.ReasonCredentialInvalid {
			t.Errorf("the stream ends with %v, %v", ctx.Err(), err)
		}
	})
}

func TestStopWaitsForTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHolder()
		a, _ := newAuthenticator(t, Config{}, h)
		ctx, stop := enter(t, a, good)
		h.set(func(h *holder) { h.hangs = true })
		time.Sleep(longest) //nolint:forbidigo // the bubble's clock; the check hangs now
		before := time.Now()
		stop()
		if !h.mu.TryLock() {
			t.Error("the check goes on")
		}
		if ctx.Err() == nil || Ended(ctx) != nil || time.Since(before) > 0 {
			t.Errorf("after %s: %v, %v", time.Since(before), ctx.Err(), Ended(ctx))
		}
	})
}

// wire is a stream of a client that always has a message, and takes each.
type wire struct {
	grpc.ServerStream
	ctx context.Context
}

func (w wire) Context() context.Context { return w.ctx }
func (wire) RecvMsg(any) error          { return nil }
func (wire) SendMsg(any) error          { return nil }

func TestAnRPCEndsWithItsCredential(t *testing.T) {
	for name, handle := range map[string]func(ss grpc.ServerStream) error{
		"a handler that waits":    func(ss grpc.ServerStream) error { <-ss.Context().Done(); return ss.Context().Err() },
		"a handler that receives": func(ss grpc.ServerStream) error { return until(func() error { return ss.RecvMsg(nil) }) },
		"a handler that sends":    func(ss grpc.ServerStream) error { return until(func() error { return ss.SendMsg(nil) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHolder()
				a, _ := newAuthenticator(t, Config{}, h)
				ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer fl_good"))
				began := time.Now()
				err := a.StreamServer()(nil, wire{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/s/M"}, func(_ any, ss grpc.ServerStream) error {
					h.set(func(h *holder) { h.fail = ErrRefused })
					return handle(ss)
				})
				if apierr.Reason(err) != apierr.ReasonCredentialInvalid || time.Since(began) > longest+time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// until repeats do until its error.
func until(do func() error) error {
	for {
		if err := do(); err != nil {
			return err
		}
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
	}
}

func TestAnOutcomeOfAStreamIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newAuthenticator(t, Config{}, newHolder())
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-api-key", "fl_good"))
		for _, want := range []error{nil, errors.New("disk")} {
			err := a.StreamServer()(nil, wire{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/s/M"}, func(_ any, ss grpc.ServerStream) error {
				if p, _ := principal.From(ss.Context()); p.User != "ann" {
					t.Errorf("the caller is %+v", p)
				}
				return want
			})
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}
