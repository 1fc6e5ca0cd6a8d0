// Package auth finds out who calls: it turns a credential into a principal.
package auth

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Mode decides which calls need a credential.
type Mode string

// Modes.
const (
	// Auto needs a credential once an API key exists, an issuer is configured, or other machines can call.
	Auto Mode = "auto"
	// Open needs none: a call without one is the default user's, an administrator.
	Open Mode = "open"
	// Required always needs one.
	Required Mode = "required"
)

// Config configures which credentials are accepted, of clients and between the services.
type Config struct {
	Mode           Mode     `key:"mode" help:"whether calls need a credential: auto (not as long as every listener for clients is on loopback, no issuer is configured and no API key exists), open (never) or required"`
	InsecureNoAuth bool     `key:"insecure-no-auth" flag:"insecure-no-auth" help:"let every caller in as administrator, even if other machines can reach the listeners for clients"`
	Issuers        []Issuer `key:"issuers" help:"issuers of JSON Web Tokens that are accepted as credentials"`

	InternalKey        config.Secret `key:"internal-key" env:"FAIRLEAD_INTERNAL_KEY" help:"the key by which the services know each other, the same for all: 32 random bytes as base64 (openssl rand -base64 32), or file: and the path of a file with them"`
	InternalPublicKeys []string      `key:"internal-public-keys" env:"FAIRLEAD_INTERNAL_PUBLIC_KEYS" help:"Ed25519 public keys (32 bytes, as base64) whose internal tokens are accepted, too: for a service that only answers, and during a change of the key"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return Config{Mode: Auto} }

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	if c.Mode != "" && c.Mode != Auto && c.Mode != Open && c.Mode != Required {
		faults = append(faults, fmt.Errorf("mode: %q is not auto, open or required", c.Mode))
	}
	if c.InsecureNoAuth && (c.Mode == Required || len(c.Issuers) > 0) {
		faults = append(faults, errors.New("insecure-no-auth: contradicts mode required, and a configured issuer"))
	}
	for n, i := range c.Issuers {
		for _, before := range c.Issuers[:n] {
			switch {
			case before.Issuer == i.Issuer:
				faults = append(faults, fmt.Errorf("issuers: %s is there twice", i.Issuer))
			case meet(before, i):
				faults = append(faults, fmt.Errorf("issuers: %s and %s both have users of one tenant, and could give the same name to two people; "+
					"set user-prefix of both, to values of which none begins with the other", before.Issuer, i.Issuer))
			}
		}
	}
	if _, err := c.Keys(); err != nil && !errors.Is(err, ErrNoKeys) {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// mode returns the mode of listeners for clients.
func (c Config) mode(reachable bool) (Mode, error) {
	switch {
	case c.InsecureNoAuth:
		return Open, nil
	case c.Mode == Open && reachable:
		return "", errors.New("auth.mode: is open, and other machines can reach the listeners for clients; " +
			"require a credential (auth.mode=required), listen on loopback, or let every caller in with --insecure-no-auth")
	case c.Mode != Open && (reachable || len(c.Issuers) > 0):
		return Required, nil
	}
	return cmp.Or(c.Mode, Auto), nil
}

// makeKey is the command that makes a key.
const makeKey = "openssl rand -base64 32"

// ErrNoKeys is the error of Keys without any key.
var ErrNoKeys = errors.New("auth.internal-key: is missing; the services of Fairlead know each other by it. " +
	"Make one with `" + makeKey + "`, and give the same to all services, as in FAIRLEAD_INTERNAL_KEY")

// Keys returns the keys of internal tokens, or ErrNoKeys.
func (c Config) Keys() (*internaltoken.Keys, error) {
	if c.InternalKey == "" && len(c.InternalPublicKeys) == 0 {
		return nil, ErrNoKeys
	}
	seed, err := c.seed()
	if err != nil {
		return nil, err
	}
	var public []ed25519.PublicKey
	for _, text := range c.InternalPublicKeys {
		p, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(p) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("internal-public-keys: %q is not %d bytes as base64", text, ed25519.PublicKeySize)
		}
		public = append(public, p)
	}
	return internaltoken.New(seed, public...)
}

// seed reads the private key, if there is one. No error repeats it.
func (c Config) seed() ([]byte, error) {
	text := c.InternalKey.Reveal()
	if name, ok := strings.CutPrefix(text, "file:"); ok {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("internal-key: %w", err)
		}
		if text = strings.TrimSpace(string(content)); text == "" {
			return nil, fmt.Errorf("internal-key: %s is empty", name)
		}
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != internaltoken.SeedSize && text != "" {
		return nil, fmt.Errorf("internal-key: is not %d bytes as base64; make one with `%s`", internaltoken.SeedSize, makeKey)
	}
	return seed, nil
}
