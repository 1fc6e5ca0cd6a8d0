package apikey_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// used records the uses of keys that are written.
type used struct {
	store.Store
	mu     sync.Mutex
	writes [][]store.KeyUse
	fail   bool
}

// take returns the writes since the last call, and sets whether the next ones fail.
func (u *used) take(fail bool) [][]store.KeyUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	writes := u.writes
	u.writes, u.fail = nil, fail
	return writes
}

func (u *used) ResolveKey(_ context.Context, hash []byte) (store.Resolved, error) {
	return store.Resolved{Owner: store.Owner{Tenant: "acme", User: "ann"}, Key: string(bytes.TrimRight(hash, "\x00"))}, nil
}

func (u *used) KeysUsed(_ context.Context, uses []store.KeyUse) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail {
		return errors.New("away")
	}
	u.writes = append(u.writes, uses)
	return nil
}

func TestTheLastUseOfAKeyIsWrittenOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &used{fail: true}
		r := apikey.NewResolver(u, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		call := func(key string) {
			if _, err := r.Resolve(ctx, []byte(key)); err != nil {
				t.Error(err)
			}
		}
		pass := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // the bubble's clock
			synctest.Wait()
		}
		begin := time.Now()
		for range 30 {
			call("a")
			pass(time.Second)
		}
		call("b")
		pass(time.Minute)
		if wrote := u.take(false); len(wrote) > 0 {
			t.Fatalf("a failed write wrote %v", wrote)
		}
		pass(time.Minute)
		wrote := u.take(false)
		if len(wrote) != 1 || len(wrote[0]) != 2 {
			t.Fatalf("writes %v", wrote)
		}
		for _, use := range wrote[0] {
			if want := map[string]time.Duration{"a": 29 * time.Second, "b": 30 * time.Second}[use.Key]; use.Time.Sub(begin) != want || use.Tenant != "acme" {
				t.Errorf("%s was used after %v, not %v", use.Key, use.Time.Sub(begin), want)
			}
		}
		pass(time.Minute)
		call("c")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if wrote := u.take(false); len(wrote) != 1 || wrote[0][0].Key != "c" {
			t.Errorf("at the end: %v", wrote)
		}
	})
}

func TestScopesAreThoseOfClients(t *testing.T) {
	all := apikey.Scopes()
	for _, s := range []string{"sessions.read", "sessions.write", "tools.read", "keys.write", "metrics.read"} {
		if !slices.Contains(all, s) {
			t.Errorf("%s is not among %v", s, all)
		}
	}
}
