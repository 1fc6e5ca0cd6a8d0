package host

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestAnAddressInUseNamesItsFlag(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	address := taken.Addr().String()
	for flag, set := range map[string]func(*Config){
		"grpc": func(c *Config) { c.GRPC = address }, "http": func(c *Config) { c.HTTP = address }, "ops": func(c *Config) { c.Ops = address },
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			conf := Defaults(t.TempDir())
			conf.GRPC, conf.HTTP = "127.0.0.1:0", "127.0.0.1:0"
			conf.Sandbox.Driver, conf.Sandbox.NoIsolation = "none", true
			conf.Session.Models.Model = "scripted:default"
			set(&conf)
			h, err := New(t.Context(), conf, telemetry.Discard(slog.New(slog.DiscardHandler)), "1")
			if err != nil {
				t.Fatal(err)
			}
			err = h.Run(t.Context(), nil)
			if want := "choose another address with --" + flag + " "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "stop the program") {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
