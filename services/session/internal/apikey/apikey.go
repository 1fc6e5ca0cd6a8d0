// Package apikey makes API keys and finds what their holders may do.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
)

// Prefix begins every key, so that people and scanners recognize one.
const Prefix = "fl_"

// Secret is a new key: the prefix and 256 random bits. It is shown once.
type Secret struct{ text string }

// New makes a key.
func New() Secret {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return Secret{Prefix + base64.RawURLEncoding.EncodeToString(b[:])}
}

// String returns the key for its only answer.
func (s Secret) String() string { return s.text }

// Hash returns what the store keeps: the SHA-256 of the whole text.
func (s Secret) Hash() []byte {
	sum := sha256.Sum256([]byte(s.text))
	return sum[:]
}

// LogValue keeps the key out of logs.
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }
