package limits

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Bank gives tokens out of buckets, to all replicas together.
type Bank interface {
	// LeaseTokens takes up to Want tokens out of a bucket.
	LeaseTokens(ctx context.Context, l store.TokenLease) (granted int64, err error)
}

// Memory is the bank of a replica that shares its limits with no other one.
type Memory struct {
	mu      sync.Mutex
	buckets map[string]store.TokenBucket
}

// LeaseTokens implements Bank.
func (m *Memory) LeaseTokens(_ context.Context, l store.TokenLease) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	name := l.Tenant + "\x00" + l.Bucket
	b, ok := m.buckets[name]
	if !ok {
		if m.buckets == nil || len(m.buckets) >= maxBuckets { // to forget them gives each a full bucket
			m.buckets = map[string]store.TokenBucket{}
		}
		b = l.Full(now)
	}
	granted := l.Take(&b, now)
	m.buckets[name] = b
	return granted, nil
}

// bucket has the leased tokens of one subject.
type bucket struct {
	mu     sync.Mutex // held during a lease: the next request uses what it brings
	tokens int64
	retry  time.Time // no lease before
}

// leaseTimeout bounds a lease. A bank that does not answer refuses no request: the request itself will fail.
const leaseTimeout = 2 * time.Second

// spend spends n tokens. Without enough it returns how long to wait.
func (b *bucket) spend(ctx context.Context, bank Bank, l store.TokenLease, n int64) (wait time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens >= n {
		b.tokens -= n
		return 0, nil
	}
	if wait := time.Until(b.retry); wait > 0 {
		return wait, nil
	}
	l.Want = max(l.Want, n-b.tokens)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	granted, err := bank.LeaseTokens(ctx, l)
	if err != nil {
		return 0, err
	}
	if b.tokens += granted; b.tokens >= n {
		b.tokens -= n
		return 0, nil
	}
	wait = time.Duration(math.Ceil(float64(l.Want-granted) / l.Rate * float64(time.Second)))
	b.retry = time.Now().Add(wait)
	return wait, nil
}

// put returns tokens that were not needed.
func (b *bucket) put(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens += n
}
