package gateway_test

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

func TestTheDefaultsAreValid(t *testing.T) {
	if err := gateway.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// Proxies cut streams that are silent for 15 seconds, and some for 10.
func TestAQuietStreamSpeaksEveryFewSeconds(t *testing.T) {
	if c := gateway.DefaultConfig(); c.Heartbeat > 6*time.Second {
		t.Errorf("a quiet stream is silent for %v", c.Heartbeat)
	}
}

func TestEveryFaultOfAConfigurationIsNamed(t *testing.T) {
	c := gateway.Config{
		Heartbeat: -time.Second, MaxBody: 100, MaxStreams: -1, MaxStreamsPerClient: -1, MaxStreamsPerUser: -1, Rate: math.NaN(),
		AllowedOrigins: []string{"https://ok.example", "*", "https://x.example/", "ftp://x.example", "HTTPS://x.example", "x.example", "null"},
	}
	got := c.Validate()
	if got == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{
		"heartbeat: ", "reconnect: ", "write-timeout: ", "\ntimeout: ", "body-timeout: ", "max-body: ", "max-streams: ", "max-streams-per-client: ", "max-streams-per-user: ", "rate: ",
		`"*"`, `"https://x.example/"`, `"ftp://x.example"`, `"HTTPS://x.example"`, `"x.example"`, `"null"`,
	} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("%q is not named in:\n%v", want, got)
		}
	}
	if strings.Contains(got.Error(), "ok.example") {
		t.Errorf("a good origin is a fault:\n%v", got)
	}
	c = gateway.DefaultConfig()
	c.Heartbeat = 16 * time.Second
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "heartbeat: 16s is more than 15s") {
		t.Errorf("a heartbeat of 16 s: %v", err)
	}
	c = gateway.DefaultConfig()
	c.Rate, c.Burst = 1, 0
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "burst: ") {
		t.Errorf("a burst of 0: %v", err)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	conn, err := rpc.Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := gateway.New(t.Context(), gateway.Config{}, gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t), Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("an empty configuration is taken")
	}
	if _, err := gateway.New(t.Context(), gateway.DefaultConfig(), gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t)}); err == nil {
		t.Error("no log is taken")
	}
}
