package main

import (
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

func TestBanner(t *testing.T) {
	t.Parallel()
	box := &sandboxv1.GetCapabilitiesResponse{Level: "full", Driver: "bubblewrap"}
	for _, c := range []struct {
		name          string
		database      string
		model         string
		scripted      bool
		want, without []string
	}{
		{
			"a script on SQLite", "", "scripted:default", true,
			[]string{"http://127.0.0.1:8080", "127.0.0.1:9090", "SQLite in the data directory", "level full, by bubblewrap", "scripted:default", "The model is a script", "ANTHROPIC_API_KEY", "curl", "without a key", "fairlead admin init"}, nil,
		},
		{
			"a model on Postgres, without its password", "postgres://me:geheim@db.example/fairlead?password=verborgen", "anthropic:claude", false,
			[]string{"Postgres at db.example/fairlead", "anthropic:claude"}, []string{"geheim", "verborgen", "script", "admin init"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := host.Defaults("/data")
			conf.Session.DatabaseURL = config.Secret(c.database)
			addresses := map[string]string{"http": "127.0.0.1:8080", "public": "127.0.0.1:9090"}
			got := banner(conf, addresses, box, &host.Host{Data: "/data", Model: c.model, Scripted: c.scripted}, entrance(c.scripted, c.scripted))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
			for _, not := range c.without {
				if strings.Contains(got, not) {
					t.Errorf("%q is in:\n%s", not, got)
				}
			}
		})
	}
}

func TestDataDirectory(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for name, c := range map[string]struct{ xdg, want string }{
		"the user's":               {"", "/home/me/.local/share/fairlead"},
		"where XDG says":           {"/xdg", "/xdg/fairlead"},
		"a relative one is no XDG": {"xdg", "/home/me/.local/share/fairlead"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dataDir(func(string) string { return c.xdg }); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
