package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func TestInternalKeys(t *testing.T) {
	seed := []byte("0123456789abcdef0123456789abcdef")
	text := base64.StdEncoding.EncodeToString(seed)
	public := base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mints, err := auth.Config{InternalKey: config.Secret(text)}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	token, err := mints.Mint(principal.Default(), "session")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config auth.Config
		want   string
	}{
		"the same key":            {auth.Config{InternalKey: config.Secret(text)}, ""},
		"the same key in a file":  {auth.Config{InternalKey: config.Secret("file:" + file)}, ""},
		"its public key":          {auth.Config{InternalPublicKeys: []string{public}}, ""},
		"nothing":                 {auth.Config{}, "openssl rand -base64 32"},
		"a key that is too short": {auth.Config{InternalKey: "c2hvcnQ="}, "internal-key: is not 32 bytes"},
		"a key that is no base64": {auth.Config{InternalKey: "!"}, "internal-key: is not 32 bytes"},
		"no such file":            {auth.Config{InternalKey: "file:/nonesuch"}, "internal-key: open /nonesuch"},
		"a bad public key":        {auth.Config{InternalPublicKeys: []string{"AAAA"}}, `internal-public-keys: "AAAA"`},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := c.config.Keys()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "c2hvcnQ") {
					t.Errorf("got %v", err)
				}
				if errors.Is(err, auth.ErrNoKeys) != (c.config.Validate() == nil) {
					t.Errorf("Validate: %v", c.config.Validate())
				}
				return
			}
			if err == nil {
				_, err = keys.Verify(token, "session")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
