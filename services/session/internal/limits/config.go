// Package limits bounds what tenants, users and keys use: requests a second, open streams, bytes of uploads, turns and
// sessions. Requests and uploads are paid with tokens, which replicas lease in small batches from one bucket a subject,
// so that the sum over the replicas keeps the limit. Streams are counted on each replica. Turns and sessions are counted
// by the store, in the transaction that adds one.
package limits

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config has the limits. Zero is no limit.
type Config struct {
	Scopes

	Tenants map[string]Scopes `key:"tenants" help:"other limits for single tenants, by their id: tenant, user and key, with the keys that these have here; a limit that an entry leaves out does not hold for the tenant"`
}

// Defaults returns the default limits. A user has fewer streams than the gateway grants an address, and more than it grants
// a user: a follower's stream may overlap with its successor.
func Defaults() Config { return Config{Scopes: Scopes{User: Set{KeySet: KeySet{Streams: 400}}}} }

// Scopes are the limits of a tenant, of each of its users, and of each of their keys.
type Scopes struct {
	Tenant Set    `key:"tenant"`
	User   Set    `key:"user"`
	Key    KeySet `key:"key"`
}

// KeySet has the limits of a key.
type KeySet struct {
	Rate        float64     `key:"rate" help:"how many requests a second, of which those of one second may come at once; 0: no limit"`
	Streams     int         `key:"streams" help:"the most open streams on one replica; 0: no limit"`
	UploadBytes config.Size `key:"upload-bytes" help:"how many bytes of files and imports a day; 0: no limit"`
}

// Set has the limits of a tenant or a user.
type Set struct {
	KeySet

	Turns    int `key:"turns" help:"the most turns at the same time, queued ones included; 0: no limit"`
	Sessions int `key:"sessions" help:"the most sessions; 0: no limit"`
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	faults := []error{c.validate("")}
	for tenant, s := range c.Tenants {
		faults = append(faults, s.validate("tenants."+tenant+"."))
	}
	return errors.Join(faults...)
}

func (s Scopes) validate(place string) error {
	var faults []error
	for scope, set := range map[string]Set{"tenant": s.Tenant, "user": s.User, "key": {KeySet: s.Key}} {
		if !(set.Rate >= 0) || math.IsInf(set.Rate, 0) || set.Rate > 0 && set.Rate < 0.1 { // also NaN
			faults = append(faults, fmt.Errorf("%s%s.rate: %v is not 0 and not a number of requests a second from 0.1 on", place, scope, set.Rate))
		}
		for key, n := range map[string]int64{
			"streams": int64(set.Streams), "turns": int64(set.Turns), "sessions": int64(set.Sessions), "upload-bytes": int64(set.UploadBytes),
		} {
			if n < 0 {
				faults = append(faults, fmt.Errorf("%s%s.%s: %d is negative; 0 is no limit", place, scope, key, n))
			}
		}
	}
	return errors.Join(faults...)
}

// of returns the limits of a tenant.
func (c Config) of(tenant string) Scopes {
	if s, ok := c.Tenants[tenant]; ok {
		return s
	}
	return c.Scopes
}

// Turns returns the caps on the turns of a user, for the store.
func (c Config) Turns(tenant, user string) []store.Cap {
	s := c.of(tenant)
	return caps(s.Tenant.Turns, user, s.User.Turns)
}

// Sessions returns the caps on the sessions of a user, for the store.
func (c Config) Sessions(tenant, user string) []store.Cap {
	s := c.of(tenant)
	return caps(s.Tenant.Sessions, user, s.User.Sessions)
}

func caps(ofTenant int, user string, ofUser int) []store.Cap {
	var all []store.Cap
	if ofTenant > 0 {
		all = append(all, store.Cap{Most: ofTenant})
	}
	if ofUser > 0 {
		all = append(all, store.Cap{User: user, Most: ofUser})
	}
	return all
}

// Sizes of buckets and batches.
const (
	burst     = time.Second           // of requests, that a full bucket has
	batch     = 50 * time.Millisecond // of tokens, that a replica leases at a time
	uploadDay = 24 * time.Hour
	// uploadBatch is how many bytes of an upload a replica leases at a time.
	uploadBatch = 1 << 20
)
