package limits

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func as(t *testing.T, tenant, user, credential string) context.Context {
	t.Helper()
	return principal.With(t.Context(), principal.Principal{Tenant: tenant, User: user, Role: principal.RoleUser, Credential: credential})
}

func newLimiter(t *testing.T, c Config, bank Bank) *Limiter {
	t.Helper()
	return New(c, bank, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func rate(r float64) Set { return Set{KeySet: KeySet{Rate: r}} }

func TestARateIsKeptOverTime(t *testing.T) {
	for _, perSecond := range []float64{0.5, 7, 100, 3000} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, Config{Scopes: Scopes{User: rate(perSecond)}}, &Memory{})
			ctx, admitted, begin := as(t, "acme", "ann", ""), 0, time.Now()
			for time.Since(begin) < 20*time.Second {
				err := l.Request(ctx)
				if err == nil {
					admitted++
					continue
				}
				info, _ := apierr.Detail[*errdetails.RetryInfo](err)
				if info.GetRetryDelay().AsDuration() <= 0 {
					t.Fatalf("no time to wait: %v", err)
				}
				<-time.After(info.GetRetryDelay().AsDuration()) // the clock is that of synctest
			}
			want := 20*perSecond + math.Max(1, perSecond) // and what may come at once
			if diff := math.Abs(float64(admitted) - want); diff > math.Max(1, 0.05*want) {
				t.Errorf("%v a second: %d requests in 20 s, want %v", perSecond, admitted, want)
			}
		})
	}
}

func TestEachSubjectHasItsOwnLimit(t *testing.T) {
	c := Config{
		Scopes:  Scopes{Tenant: rate(4), User: rate(2), Key: KeySet{Rate: 1}},
		Tenants: map[string]Scopes{"globex": {User: rate(3)}},
	}
	for _, tt := range []struct {
		name  string
		spent []context.Context
		next  context.Context
		limit string // of the error; "" for none
		whose string
	}{
		{"a key", []context.Context{as(t, "acme", "ann", "keys/1")}, as(t, "acme", "ann", "keys/1"), "session.limits.key.rate", "keys/1"},
		{"another key of the user", []context.Context{as(t, "acme", "ann", "keys/1")}, as(t, "acme", "ann", "keys/2"), "", ""},
		{"a user", []context.Context{as(t, "acme", "ann", "keys/1"), as(t, "acme", "ann", "keys/2")}, as(t, "acme", "ann", "keys/3"), "session.limits.user.rate", "users/ann"},
		{
			"a tenant", []context.Context{as(t, "acme", "ann", ""), as(t, "acme", "ann", ""), as(t, "acme", "bob", ""), as(t, "acme", "bob", "")},
			as(t, "acme", "eve", ""), "session.limits.tenant.rate", "tenants/acme",
		},
		{"a user of the same name in another tenant", []context.Context{as(t, "acme", "ann", ""), as(t, "acme", "ann", "")}, as(t, "initech", "ann", ""), "", ""},
		{"a tenant with limits of its own", []context.Context{as(t, "globex", "ann", "keys/1"), as(t, "globex", "ann", "keys/1")}, as(t, "globex", "ann", "keys/1"), "", ""},
		{"a service", nil, principal.With(t.Context(), principal.Service("acme", "ann")), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLimiter(t, c, &Memory{})
			for i, ctx := range tt.spent {
				if err := l.Request(ctx); err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
			}
			err := l.Request(tt.next)
			quota, _ := apierr.Detail[*errdetails.QuotaFailure](err)
			if tt.limit == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if apierr.Code(err) != codes.ResourceExhausted || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) || len(quota.GetViolations()) != 1 ||
				quota.GetViolations()[0].GetSubject() != tt.whose || !strings.HasPrefix(quota.GetViolations()[0].GetDescription(), tt.limit+": ") {
				t.Errorf("%v, %v", err, quota)
			}
		})
	}
}

// A request that the tenant's limit refuses costs its user nothing.
func TestARefusedRequestCostsNothing(t *testing.T) {
	l := newLimiter(t, Config{Scopes: Scopes{Tenant: rate(1), User: rate(2)}}, &Memory{})
	ann, bob := as(t, "acme", "ann", ""), as(t, "acme", "bob", "")
	if err := l.Request(bob); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := l.Request(ann); apierr.Code(err) != codes.ResourceExhausted {
			t.Fatalf("beyond the tenant's limit: %v", err)
		}
	}
	l.config.Tenant.Rate = 0
	if err := l.Request(ann); err != nil {
		t.Errorf("the user has paid for what was refused: %v", err)
	}
}

func TestStreamsAreCountedWhileTheyAreOpen(t *testing.T) {
	l := newLimiter(t, Config{Scopes: Scopes{User: Set{KeySet: KeySet{Streams: 1}}}}, &Memory{})
	ann := as(t, "acme", "ann", "")
	release, err := l.Stream(ann)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Stream(ann); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) || !strings.Contains(err.Error(), "session.limits.user.streams: 1 open") {
		t.Errorf("a second stream: %v", err)
	}
	if _, err := l.Stream(as(t, "acme", "bob", "")); err != nil {
		t.Errorf("another user's: %v", err)
	}
	release()
	if _, err := l.Stream(ann); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestUploadsAreCountedByTheByte(t *testing.T) {
	l := newLimiter(t, Config{Scopes: Scopes{User: Set{KeySet: KeySet{UploadBytes: 1000}}}}, &Memory{})
	ann := as(t, "acme", "ann", "")
	for range 4 {
		if err := l.Upload(ann, 250); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Upload(ann, 250); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED) || !strings.Contains(err.Error(), "session.limits.user.upload-bytes: ") {
		t.Errorf("beyond a day's bytes: %v", err)
	}
}

type brokenBank struct{}

func (brokenBank) LeaseTokens(context.Context, store.TokenLease) (int64, error) {
	return 0, errors.New("away")
}

func TestABankThatIsAwayRefusesNothing(t *testing.T) {
	l := newLimiter(t, Config{Scopes: Scopes{User: rate(1)}}, brokenBank{})
	for range 3 {
		if err := l.Request(as(t, "acme", "ann", "")); err != nil {
			t.Error(err)
		}
	}
}

func TestFaultsOfLimitsAreNamed(t *testing.T) {
	err := Config{
		Scopes:  Scopes{User: rate(math.NaN()), Key: KeySet{Streams: -1}},
		Tenants: map[string]Scopes{"acme": {Tenant: Set{Sessions: -2}}},
	}.Validate()
	for _, want := range []string{"user.rate: NaN", "key.streams: -1", "tenants.acme.tenant.sessions: -2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %v", want, err)
		}
	}
}
