package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// errUnreachable means that an issuer's keys cannot be read.
var errUnreachable = errors.New("the keys of the issuer cannot be read")

const (
	// refreshAfter is the age from which keys are read again.
	refreshAfter = 10 * time.Minute
	// keepKeys is how long keys are used while their issuer cannot be reached.
	keepKeys = 24 * time.Hour
	// minRefresh is the least time between two reads: unknown keys in forged tokens cause no more.
	minRefresh  = 2 * time.Second
	readTimeout = 5 * time.Second
	maxDocument = 1 << 20 // bytes of a document of an issuer
)

// keySet has the public keys of an issuer. It reads them when a token names one that it does not have, and after a
// while.
type keySet struct {
	read       func(ctx context.Context) (jose.JSONWebKeySet, error)
	minRefresh time.Duration

	reading sync.Mutex // held during a read, so that there is one at a time

	mu     sync.Mutex
	keys   jose.JSONWebKeySet
	at     time.Time // of the last successful read
	tried  time.Time // of the last read
	failed error     // of the last read
}

func newKeySet(c Issuer) *keySet {
	k := &keySet{minRefresh: minRefresh}
	switch {
	case c.JWKSFile != "":
		k.read = func(context.Context) (jose.JSONWebKeySet, error) { return readKeyFile(c.JWKSFile) }
	case c.JWKSURL != "":
		k.read = func(ctx context.Context) (set jose.JSONWebKeySet, err error) {
			return set, getJSON(ctx, c.JWKSURL, &set)
		}
	default:
		k.read = func(ctx context.Context) (jose.JSONWebKeySet, error) { return discover(ctx, c.Issuer) }
	}
	return k
}

// find returns the keys that a token may be signed with. An empty id stands for any key.
func (k *keySet) find(ctx context.Context, id, algorithm string) ([]jose.JSONWebKey, error) {
	found, fresh, _ := k.matching(id, algorithm)
	if fresh {
		return found, nil
	}
	if len(found) == 0 {
		k.reading.Lock()
	} else if !k.reading.TryLock() {
		return found, nil // another request reads them
	}
	defer k.reading.Unlock()
	k.refresh(ctx)
	found, _, failed := k.matching(id, algorithm)
	switch {
	case len(found) > 0:
		return found, nil
	case failed != nil:
		return nil, fmt.Errorf("%w: %w", errUnreachable, failed)
	}
	return nil, errors.New("its issuer has no such key")
}

// refresh reads the keys, unless they have just been read.
func (k *keySet) refresh(ctx context.Context) {
	k.mu.Lock()
	tried := k.tried
	k.mu.Unlock()
	if time.Since(tried) < k.minRefresh {
		return
	}
	// The end of one request must not fail those that wait for the same read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	set, err := k.read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried, k.failed = time.Now(), err
	if err == nil {
		k.keys, k.at = set, k.tried
	}
}

// matching returns the keys that a token may be signed with, whether they need not be read again, and why the last read
// failed.
func (k *keySet) matching(id, algorithm string) (found []jose.JSONWebKey, fresh bool, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := time.Since(k.at)
	if age > keepKeys {
		return nil, false, k.failed
	}
	for _, key := range k.keys.Keys {
		if (id == "" || key.KeyID == id) && (key.Use == "" || key.Use == "sig") && (key.Algorithm == "" || key.Algorithm == algorithm) && key.IsPublic() && key.Valid() {
			found = append(found, key)
		}
	}
	return found, len(found) > 0 && age < refreshAfter, k.failed
}

func readKeyFile(name string) (set jose.JSONWebKeySet, err error) {
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	return set, err
}

// discover reads the keys of an issuer at the address that its OpenID configuration names.
func discover(ctx context.Context, issuer string) (set jose.JSONWebKeySet, err error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := getJSON(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &about); err != nil {
		return set, err
	}
	if about.Issuer != issuer {
		return set, fmt.Errorf("the issuer calls itself %q", about.Issuer)
	}
	if err := checkURL(about.Keys); err != nil {
		return set, fmt.Errorf("jwks_uri: %w", err)
	}
	return set, getJSON(ctx, about.Keys, &set)
}

// client reads documents of issuers. It follows no redirect, and keeps no connection: there are few reads.
var client = &http.Client{
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func getJSON(ctx context.Context, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with %s", url, resp.Status)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("%s does not answer with JSON: %w", url, err)
	}
	return nil
}
