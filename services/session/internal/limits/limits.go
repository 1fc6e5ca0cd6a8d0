package limits

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Limiter admits requests. It is safe for concurrent use.
type Limiter struct {
	config Config
	bank   Bank
	log    *slog.Logger

	mu      sync.Mutex
	buckets map[string]*bucket
	streams map[string]int
}

// maxBuckets bounds the memory for subjects.
const maxBuckets = 100_000

// New returns a limiter that takes tokens from a bank.
func New(c Config, bank Bank, log *slog.Logger) *Limiter {
	return &Limiter{config: c, bank: bank, log: log, buckets: map[string]*bucket{}, streams: map[string]int{}}
}

// subject is a tenant, a user or a key, with its limits.
type subject struct {
	scope  string // tenant, user or key, as in the configuration
	tenant string
	name   string // as in errors
	KeySet
}

// subjects returns what a caller's requests count for, the narrowest first. Calls of services count for nothing.
func (l *Limiter) subjects(ctx context.Context) []subject {
	p, ok := principal.From(ctx)
	if !ok || p.Role >= principal.RoleService {
		return nil
	}
	s := l.config.of(p.Tenant)
	all := []subject{
		{"user", p.Tenant, "users/" + p.User, s.User.KeySet},
		{"tenant", p.Tenant, "tenants/" + p.Tenant, s.Tenant.KeySet},
	}
	if p.Credential != "" {
		all = append([]subject{{"key", p.Tenant, p.Credential, s.Key}}, all...)
	}
	return all
}

// Request pays for one request, or returns the error for the caller. Of the calls that a gateway makes for one request of
// a client, the first one pays.
func (l *Limiter) Request(ctx context.Context) error {
	if rpc.IsPart(ctx) {
		return nil
	}
	return l.pay(ctx, 1, func(s subject) (store.TokenLease, string) {
		return store.TokenLease{
			Bucket: "rate " + s.name, Rate: s.Rate, Burst: int64(max(1, s.Rate*burst.Seconds())), Want: int64(max(1, s.Rate*batch.Seconds())),
		}, fmt.Sprintf("session.limits.%s.rate: %v requests a second", s.scope, s.Rate)
	})
}

// Upload pays for bytes of an upload.
func (l *Limiter) Upload(ctx context.Context, n int) error {
	return l.pay(ctx, int64(n), func(s subject) (store.TokenLease, string) {
		day := int64(s.UploadBytes)
		return store.TokenLease{
			Bucket: "upload " + s.name, Rate: float64(day) / uploadDay.Seconds(), Burst: day, Want: min(uploadBatch, max(1, day/100)),
		}, fmt.Sprintf("session.limits.%s.upload-bytes: %s a day", s.scope, s.UploadBytes)
	})
}

// pay takes n tokens of each subject that has a limit, or none. Its error has the longest wait, after which all have
// enough.
func (l *Limiter) pay(ctx context.Context, n int64, of func(subject) (lease store.TokenLease, limit string)) error {
	var paid []*bucket
	var refused error
	var longest time.Duration
	for _, s := range l.subjects(ctx) {
		lease, limit := of(s)
		if lease.Rate <= 0 {
			continue
		}
		lease.Tenant = s.tenant
		b := l.bucket(s.tenant + "\x00" + lease.Bucket)
		wait, err := b.spend(ctx, l.bank, lease, n)
		if err != nil {
			l.log.WarnContext(ctx, "a limit could not be checked, and the request passes", "limit", limit, "error", err)
			continue
		}
		switch {
		case wait == 0:
			paid = append(paid, b)
		case wait > longest:
			longest, refused = wait, refusal.LimitReached(s.name, limit, wait)
		}
	}
	if refused != nil {
		for _, p := range paid {
			p.put(n)
		}
	}
	return refused
}

func (l *Limiter) bucket(name string) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[name]
	if !ok {
		if len(l.buckets) >= maxBuckets {
			clear(l.buckets) // the tokens in them are lost, which no limit forbids
		}
		b = &bucket{}
		l.buckets[name] = b
	}
	return b
}

// streamWait is the wait that a caller with too many streams is told.
const streamWait = time.Second

// Stream counts an open stream until release is called, once.
func (l *Limiter) Stream(ctx context.Context) (release func(), err error) {
	all := l.subjects(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range all {
		if s.Streams > 0 && l.streams[s.key()] >= s.Streams {
			return nil, refusal.LimitReached(s.name, fmt.Sprintf("session.limits.%s.streams: %d open streams", s.scope, s.Streams), streamWait)
		}
	}
	for _, s := range all {
		l.streams[s.key()]++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, s := range all {
			if l.streams[s.key()]--; l.streams[s.key()] == 0 {
				delete(l.streams, s.key())
			}
		}
	}, nil
}

func (s subject) key() string { return s.tenant + "\x00" + s.name }
