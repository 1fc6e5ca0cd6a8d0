package store

import (
	"fmt"
	"math"
	"time"
)

// Cap bounds what a tenant, or one of its users, may have at the same time.
type Cap struct {
	User string // empty: all users of the tenant
	Most int
}

// CapError says which cap refused a turn or a session.
type CapError struct {
	Cap
	Tenant string
	What   string // turns or sessions
}

// Error implements error.
func (e *CapError) Error() string {
	return fmt.Sprintf("store: tenant %s, user %q: there are %d %s already", e.Tenant, e.User, e.Most, e.What)
}

// TokenLease asks for tokens of a bucket.
type TokenLease struct {
	Tenant, Bucket string
	Rate           float64 // tokens a second that flow into the bucket
	Burst          int64   // how many it holds
	Want           int64
}

// TokenBucket is the state of a bucket.
type TokenBucket struct {
	Tokens float64
	Time   time.Time // when it had them
}

// Full returns the state of a new bucket.
func (l TokenLease) Full(now time.Time) TokenBucket { return TokenBucket{float64(l.Burst), now} }

// Take takes as many whole tokens as the bucket has, up to Want.
func (l TokenLease) Take(b *TokenBucket, now time.Time) int64 {
	if passed := now.Sub(b.Time); passed > 0 { // a clock that goes back takes nothing away
		b.Tokens += passed.Seconds() * l.Rate
		b.Time = now
	}
	b.Tokens = min(b.Tokens, float64(l.Burst))
	granted := min(l.Want, int64(math.Floor(b.Tokens)))
	b.Tokens -= float64(granted)
	return granted
}
