package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// sealer encrypts what is stored: a copy of the database alone shows no token.
type sealer struct{ aead cipher.AEAD }

// newSealer returns the sealer of the operator's key.
func newSealer(key string) (sealer, error) {
	sum := sha256.Sum256([]byte("fairlead mcp logins\x00" + key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return sealer{}, fmt.Errorf("the key of logins: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return sealer{}, fmt.Errorf("the key of logins: %w", err)
	}
	return sealer{aead}, nil
}

// seal encrypts v. It can be opened only for the same purpose.
func (s sealer) seal(purpose string, v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, plain, []byte(purpose)), nil
}

// open decrypts what seal returned into v.
func (s sealer) open(purpose string, sealed []byte, v any) error {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return errors.New("a stored login is too short")
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(purpose))
	if err != nil {
		return errors.New("a stored login cannot be decrypted; the operator may have changed the key")
	}
	return json.Unmarshal(plain, v)
}
