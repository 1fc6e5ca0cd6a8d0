package worker

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Config says which queue a worker serves, and how.
type Config struct {
	URL         string        `key:"url" help:"address of the Managed Agents server, below which /v1 is, such as https://api.anthropic.com, or http://127.0.0.1:8080/anthropic for Fairlead's gateway"`
	Environment string        `key:"environment" help:"id of the self-hosted environment whose queue the worker serves, such as env_0123"`
	Key         config.Secret `key:"environment-key" env:"FAIRLEAD_ENVIRONMENT_KEY" help:"key of the environment; as a flag it shows in the list of processes, so prefer the environment or environment-key-file"`
	KeyFile     string        `key:"environment-key-file" help:"file that holds the key of the environment"`
	Name        string        `key:"worker-id" help:"name of this worker in the server's records; empty takes the host's name and a random end"`
	MaxSessions int           `key:"max-sessions" help:"the most sessions that the worker serves at the same time"`
	MaxIdle     time.Duration `key:"max-idle" help:"how long the worker stays with a session whose turn has ended"`
	Lease       time.Duration `key:"lease" help:"how long the server waits for a silent worker before it gives its session to another one; whole seconds"`
	Grace       time.Duration `key:"grace" help:"how long running calls may take after SIGTERM; then they are ended"`
}

// DefaultConfig returns the defaults of all keys.
func DefaultConfig() Config {
	return Config{MaxSessions: 8, MaxIdle: time.Minute, Lease: 30 * time.Second, Grace: 30 * time.Second}
}

// Validate reports all faults.
func (c Config) Validate() error {
	var faults []error
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		faults = append(faults, errors.New("url: must be the http or https address of a Managed Agents server, such as https://api.anthropic.com"))
	}
	if c.Environment == "" || strings.ContainsAny(c.Environment, "/?#% \n") {
		faults = append(faults, errors.New("environment: must be the id of a self-hosted environment, such as env_0123"))
	}
	switch {
	case c.Key == "" && c.KeyFile == "":
		faults = append(faults, errors.New("environment-key: is missing; set FAIRLEAD_ENVIRONMENT_KEY or environment-key-file. "+makeKey))
	case c.Key != "" && c.KeyFile != "":
		faults = append(faults, errors.New("environment-key-file: there is an environment-key as well; remove one of them"))
	}
	if c.MaxSessions < 1 {
		faults = append(faults, fmt.Errorf("max-sessions: %d is less than 1", c.MaxSessions))
	}
	if c.Lease < 5*time.Second || c.Lease%time.Second != 0 {
		faults = append(faults, fmt.Errorf("lease: %v is not a number of whole seconds from 5 on", c.Lease))
	}
	if c.MaxIdle < 0 || c.Grace < 0 {
		faults = append(faults, errors.New("max-idle, grace: must not be negative"))
	}
	return errors.Join(faults...)
}

// makeKey says where a key comes from.
const makeKey = "An operator of Fairlead makes one with `fairlead keys create --scopes work.write:ENVIRONMENT`, with the id of the environment"

// key returns the key of the environment.
func (c Config) key() (string, error) {
	if c.KeyFile == "" {
		return string(c.Key), nil
	}
	raw, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return "", fmt.Errorf("environment-key-file: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" || strings.ContainsAny(key, " \n\r\t") {
		return "", fmt.Errorf("environment-key-file: %s must hold the key alone, in one line", c.KeyFile)
	}
	return key, nil
}
