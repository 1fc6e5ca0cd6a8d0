package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func TestConfigurationIsValidated(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*session.Config)
		want   string // empty: it is good
	}{
		{"the defaults with a directory", func(*session.Config) {}, ""},
		{"a database in place of the directory", func(c *session.Config) { c.Data, c.DatabaseURL = "", "postgres://u:p@h/d" }, ""},
		{"neither", func(c *session.Config) { c.Data = "" }, "data: is missing"},
		{"a URL of another database", func(c *session.Config) { c.DatabaseURL = "mysql://u:hush@h/d" }, "database-url:"},
		{"no steps", func(c *session.Config) { c.MaxSteps = 0 }, "max-steps:"},
		{"steps above the ceiling", func(c *session.Config) { c.MaxSteps = c.CeilingSteps + 1 }, "max-steps:"},
		{"a ceiling above what a request can say", func(c *session.Config) { c.CeilingSteps = 10001 }, "ceiling-steps:"},
		{"no time", func(c *session.Config) { c.MaxWallTime = 0 }, "max-wall-time:"},
		{"time above the ceiling", func(c *session.Config) { c.CeilingWallTime = time.Second }, "max-wall-time:"},
		{"negative tokens", func(c *session.Config) { c.MaxOutputTokens = -1 }, "max-output-tokens:"},
		{"tokens above the ceiling", func(c *session.Config) { c.CeilingOutputTokens = 1 }, "max-output-tokens:"},
		{"a lease that cannot be kept", func(c *session.Config) { c.LeaseTTL = 999 * time.Millisecond }, "lease-ttl:"},
		{"polling without a pause", func(c *session.Config) { c.PollInterval = 0 }, "poll-interval:"},
		{"no sessions", func(c *session.Config) { c.MaxSessions = 0 }, "max-sessions:"},
		{"no patience", func(c *session.Config) { c.PeerPatience = 0 }, "peer-patience:"},
		{"no claims", func(c *session.Config) { c.MaxClaims = 0 }, "max-claims:"},
		{"progress without a pause", func(c *session.Config) { c.StreamProgressInterval = 0 }, "stream-progress-interval:"},
		{"a default agent that is not there", func(c *session.Config) { c.DefaultAgent = "nobody" }, "default-agent"},
		{"an agent without a profile", func(c *session.Config) { c.Agents = map[string]agent.Spec{"a": {}} }, "profile is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := session.Defaults()
			c.Data = "data"
			tc.change(&c)
			err := c.Validate()
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to name %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// TestATakeoverTakesTenSecondsAtMost unless it is configured otherwise: the lease
// ends, and another replica polls.
func TestATakeoverTakesTenSecondsAtMost(t *testing.T) {
	if c := session.Defaults(); c.LeaseTTL+c.PollInterval >= 10*time.Second {
		t.Errorf("a lease lasts %v, and the next look is up to %v away", c.LeaseTTL, c.PollInterval)
	}
}

// Proxies cut streams that are silent for 15 seconds, and some for 10.
func TestAQuietStreamSpeaksEveryFewSeconds(t *testing.T) {
	if c := session.Defaults(); c.StreamProgressInterval > 6*time.Second {
		t.Errorf("a quiet stream is silent for %v", c.StreamProgressInterval)
	}
}

func TestEveryFaultOfAConfigurationIsReported(t *testing.T) {
	err := session.Config{DatabaseConfig: session.DatabaseConfig{DatabaseURL: config.Secret(":")}}.Validate()
	for _, key := range []string{"database-url", "max-steps", "max-wall-time", "max-output-tokens", "lease-ttl", "poll-interval", "max-sessions", "max-claims", "stream-progress-interval", "default-agent"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}
