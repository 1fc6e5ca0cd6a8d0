package main

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

// apiKeyVariable has a key that wins over the file.
const apiKeyVariable = "FAIRLEAD_API_KEY" //nolint:gosec // the name of a variable

// credential is what the command line sends to one server.
type credential struct {
	// Key is an API key.
	Key string `json:"key,omitempty"`
	// Login is what an issuer gave instead.
	Login *issued `json:"login,omitempty"`
	// TLS is how the server is reached; nil: without TLS.
	TLS *serverTLS `json:"tls,omitempty"`
}

// credentials is the file of credentials, by server address.
type credentials struct {
	Servers map[string]credential `json:"servers"`

	path string
}

// credentialsPath returns the file of credentials, in the user's configuration directory.
func credentialsPath(env func(string) string) (string, error) {
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead", "credentials.json"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the directory for credentials: %w; set XDG_CONFIG_HOME or %s", err, apiKeyVariable)
	}
	return filepath.Join(home, ".config", "fairlead", "credentials.json"), nil
}

// readCredentials reads the file. One that others can read is refused.
func readCredentials(env func(string) string) (*credentials, error) {
	path, err := credentialsPath(env)
	if err != nil {
		return nil, err
	}
	c := &credentials{Servers: map[string]credential{}, path: path}
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

// write replaces the file in one step.
func (c *credentials) write() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.path)
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
		err = os.Rename(file.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("write the credentials: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// credentialed returns a server that a person has named, and the options that reach it with the credential for it, if
// there is one.
func (f tlsFlags) credentialed(s stdio, server string) (endpoint, []grpc.DialOption, error) {
	e, err := f.endpoint(server, nil)
	if err != nil {
		return e, nil, err
	}
	key := strings.TrimSpace(s.env(apiKeyVariable))
	c, err := readCredentials(s.env)
	if err != nil && key == "" {
		return e, nil, err
	}
	var known credential
	found := false
	if err == nil {
		if known, found = c.Servers[e.key()]; found {
			e, err = f.endpoint(server, known.TLS)
		}
		if err != nil {
			return e, nil, err
		}
	}
	options, err := e.options()
	switch {
	case err != nil:
		return e, nil, err
	case key != "":
		options = append(options, sending(func(context.Context) (string, error) { return key, nil })...)
	case found && known.Login != nil:
		options = append(options, sending(c.refreshed(e.key()))...)
	case found && known.Key != "":
		options = append(options, sending(func(context.Context) (string, error) { return known.Key, nil })...)
	}
	return e, options, nil
}

// sending returns the option that sends a bearer credential with each call.
func sending(bearer func(context.Context) (string, error)) []grpc.DialOption {
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
