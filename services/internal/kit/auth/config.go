// Package auth finds out who calls: it turns a credential into a principal.
package auth

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Config configures the credentials of the services themselves.
type Config struct {
	InternalKey        config.Secret `key:"internal-key" env:"FAIRLEAD_INTERNAL_KEY" help:"the key by which the services know each other, the same for all: 32 random bytes as base64 (openssl rand -base64 32), or file: and the path of a file with them"`
	InternalPublicKeys []string      `key:"internal-public-keys" env:"FAIRLEAD_INTERNAL_PUBLIC_KEYS" help:"Ed25519 public keys (32 bytes, as base64) whose internal tokens are accepted, too: for a service that only answers, and during a change of the key"`
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	if c.InternalKey == "" && len(c.InternalPublicKeys) == 0 {
		return nil
	}
	_, err := c.Keys()
	return err
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
