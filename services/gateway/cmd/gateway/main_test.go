package main

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

func TestWrongConfigurationsStopTheProgram(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		env  [2]string
		want string
	}{
		{"an unknown flag", []string{"--shape=red"}, [2]string{}, "shape"},
		{"a bad value", []string{"--heartbeat=often"}, [2]string{}, "heartbeat"},
		{"a bad value in the environment", nil, [2]string{"FAIRLEAD_GATEWAY_MAX_STREAMS", "-1"}, "max-streams"},
		{"an unknown name in the environment", nil, [2]string{"FAIRLEAD_GATEWAY_SHAPE", "red"}, "FAIRLEAD_GATEWAY_SHAPE"},
		{"open, for other machines", []string{"--http=0.0.0.0:0", "--allow-non-loopback", "--auth.mode=open"}, [2]string{"FAIRLEAD_INTERNAL_KEY", base64.StdEncoding.EncodeToString(make([]byte, 32))}, "--insecure-no-auth"},
		{"no internal key", nil, [2]string{}, "openssl rand -base64 32"},
		{"a listener for everybody", []string{"--http=0.0.0.0:0"}, [2]string{}, "allow-non-loopback"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			var fault *config.Error
			if err := run(t.Context(), c.args); !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheProgramServesUntilItIsToldToStop(t *testing.T) {
	t.Setenv("FAIRLEAD_INTERNAL_KEY", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	address, client := freeAddress(t), &http.Client{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--public=", "--http=" + address, "--session=127.0.0.1:1", "--tools=127.0.0.1:1"})
	}()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 503, "/openapi.json": 200, "/v1/tools": 503, "/v1/nothing": 503} {
		if got := get(t, client, "http://"+address+path, ended); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// freeAddress returns a loopback address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get asks until the program listens, or has ended.
func get(t *testing.T, client *http.Client, url string, ended <-chan error) int {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		select {
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		case <-tick.C:
		}
	}
}
