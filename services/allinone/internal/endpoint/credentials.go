package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
)

// KeyVariable has a key that wins over the file.
const KeyVariable = "FAIRLEAD_API_KEY"

// Credential is what the command line sends to one server.
type Credential struct {
	// Key is an API key.
	Key string `json:"key,omitempty"`
	// Login is what an issuer gave instead.
	Login *Issued `json:"login,omitempty"`
	// TLS is how the server is reached; nil: without TLS.
	TLS *TLS `json:"tls,omitempty"`
}

// Credentials is the file of credentials, by server address.
type Credentials struct {
	Servers map[string]Credential `json:"servers"`

	Path string `json:"-"`
}

// credentialsPath returns the file of credentials, in the user's configuration directory.
func credentialsPath(env func(string) string) (string, error) {
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead", "credentials.json"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the directory for credentials: %w; set XDG_CONFIG_HOME or %s", err, KeyVariable)
	}
	return filepath.Join(home, ".config", "fairlead", "credentials.json"), nil
}

// ReadCredentials reads the file. One that others can read is refused.
func ReadCredentials(env func(string) string) (*Credentials, error) {
	path, err := credentialsPath(env)
	if err != nil {
		return nil, err
	}
	c := &Credentials{Servers: map[string]Credential{}, Path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s (mode %04o), so it is not used: run `chmod 600 %s`, and revoke its keys if others may have read it", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s is not a file of credentials (%w): delete it and log in again", path, err)
	}
	return c, nil
}

// Write replaces the file in one step.
func (c *Credentials) Write() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of credentials: %w", err)
	}
	file, err := os.CreateTemp(dir, ".credentials-*") // its mode is 0600
	if err != nil {
		return fmt.Errorf("write the credentials: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), c.Path)
	}
	if err != nil {
		return fmt.Errorf("write the credentials: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// Credentialed returns a server that a person has named, and the options that reach it with the credential for it, if
// there is one.
func (f TLSFlags) Credentialed(env func(string) string, server string) (Endpoint, []grpc.DialOption, error) {
	e, err := f.Endpoint(server, nil)
	if err != nil {
		return e, nil, err
	}
	key := strings.TrimSpace(env(KeyVariable))
	c, err := ReadCredentials(env)
	if err != nil && key == "" {
		return e, nil, err
	}
	var known Credential
	found := false
	if err == nil {
		if known, found = c.Servers[e.Key()]; found {
			e, err = f.Endpoint(server, known.TLS)
		}
		if err != nil {
			return e, nil, err
		}
	}
	options, err := e.Options()
	switch {
	case err != nil:
		return e, nil, err
	case key != "":
		options = append(options, Sending(func(context.Context) (string, error) { return key, nil })...)
	case found && known.Login != nil:
		options = append(options, Sending(c.refreshed(e.Key()))...)
	case found && known.Key != "":
		options = append(options, Sending(func(context.Context) (string, error) { return known.Key, nil })...)
	}
	return e, options, nil
}

// Sending returns the option that sends a bearer credential with each call.
func Sending(bearer func(context.Context) (string, error)) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithPerRPCCredentials(bearerOf(bearer))}
}

type bearerOf func(context.Context) (string, error)

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearerOf) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	text, err := b(ctx)
	return map[string]string{"authorization": "Bearer " + text}, err
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: a server on loopback has none.
func (bearerOf) RequireTransportSecurity() bool { return false }
