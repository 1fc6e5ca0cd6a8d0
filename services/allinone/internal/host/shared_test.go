package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sharing(data string) Config {
	c := Defaults(data)
	c.Session.DatabaseURL, c.Tools.DatabaseURL = "postgres://db.example/f", "postgres://db.example/f"
	return c
}

func TestAServersNameStaysWithItsData(t *testing.T) {
	t.Parallel()
	c := sharing(t.TempDir())
	if err := c.place(); err != nil {
		t.Fatal(err)
	}
	first, err := c.nodeName()
	if err != nil || first == "" {
		t.Fatal(first, err)
	}
	if again, err := c.nodeName(); err != nil || again != first {
		t.Errorf("the next start is named %q, %v, want %q", again, err, first)
	}
	if left, err := os.ReadDir(c.Sandbox.Data); err != nil || len(left) != 1 {
		t.Errorf("the data directory has %v, %v", left, err)
	}
	other := sharing(t.TempDir())
	if err := other.place(); err != nil {
		t.Fatal(err)
	}
	if name, err := other.nodeName(); err != nil || name == first {
		t.Errorf("another directory is named %q, %v", name, err)
	}
	if c.Sandbox.Node = "web1"; true {
		if name, err := c.nodeName(); err != nil || name != "web1" {
			t.Errorf("with a configured name it is %q, %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(other.Sandbox.Data, nodeFile), []byte("  \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := other.nodeName(); err != nil || name == "" {
		t.Errorf("with an empty file it is %q, %v", name, err)
	}
}

func TestWhatServersOnOneDatabaseNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // empty: it is valid
	}{
		{"nothing is set", func(*Config) {}, ""},
		{"tools has a database of its own", func(c *Config) { c.Tools.DatabaseURL = "" }, "tools.database-url"},
		{"no peer listener", func(c *Config) { c.Peer = "" }, "peer: is empty"},
		{"a peer listener for other machines, without leave", func(c *Config) { c.Peer = "10.0.0.1:9190" }, "allow-non-loopback"},
		{"a peer listener for other machines", func(c *Config) { c.Peer, c.AllowNonLoopback = "10.0.0.1:9190", true }, ""},
		{"every interface", func(c *Config) { c.Peer, c.AllowNonLoopback = ":9190", true }, "tools.advertise"},
		{"every interface, and a name", func(c *Config) {
			c.Peer, c.AllowNonLoopback, c.Tools.Advertise = "0.0.0.0:9190", true, "web1:9190"
		}, ""},
		{"SQLite needs none of it", func(c *Config) { c.Session.DatabaseURL, c.Tools.DatabaseURL, c.Peer = "", "", "" }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conf := sharing("/data")
			c.change(&conf)
			err := conf.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
