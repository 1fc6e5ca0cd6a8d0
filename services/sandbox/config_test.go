package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/sandbox"
)

// TestTheDefaultsAndEachDriverAreAValidConfiguration loads them as a program does: all sections
// are validated then, also those of other drivers.
func TestTheDefaultsAndEachDriverAreAValidConfiguration(t *testing.T) {
	for _, file := range []string{"", "driver: bubblewrap", "driver: oci", "{driver: none, allow-no-isolation: true}"} {
		c := sandbox.Defaults()
		if err := config.Load(&c, config.Options{Name: "sandbox", Prefix: "FAIRLEAD_SANDBOX_", Environ: []string{"A=b"}, Args: []string{"--config=" + configFile(t, file)}}); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// TestABadConfigurationNamesTheKeyAndWhatItTakes has operators who mistyped.
func TestABadConfigurationNamesTheKeyAndWhatItTakes(t *testing.T) {
	for name, c := range map[string]struct{ file, says string }{
		"an unknown driver":     {"driver: docker", "driver"},
		"pods":                  {"{driver: kubernetes, kubernetes: {image: x}}", "run `sandbox-kubernetes`"},
		"an unknown level":      {"level: most", "level"},
		"an unknown key":        {"limits: {memroy: 1}", "memroy"},
		"a limit below zero":    {"limits: {memory: -1}", "wrong: limits.memory: -1"},
		"no way out":            {"egress: {connections: 0}", "wrong: egress.connections: 0"},
		"little to be kept":     {"egress: {idle: 1ms}", "wrong: egress.idle: 1ms"},
		"less than no room":     {"disk: {free-bytes: -1}", "wrong: disk.free-bytes: -1"},
		"a folder of nothing":   {"storage: {alias: a, bytes: 1}", "wrong: storage.bytes: 1"},
		"half a key":            {"object-store: {url: file:///a, access-key: b}", "wrong: object-store.secret-key: "},
		"no time":               {"repositories: {timeout: 1ms}", "wrong: repositories.timeout: "},
		"no isolation, unasked": {"driver: none", "allow-no-isolation"},
		"an unknown quota":      {"workspace-quota: perhaps", "workspace-quota"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := sandbox.Defaults()
			err := config.Load(&conf, config.Options{Name: "sandbox", Prefix: "FAIRLEAD_SANDBOX_", Environ: []string{"A=b"}, Args: []string{"--config=" + configFile(t, c.file)}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want something about %s", err, c.says)
			}
		})
	}
}

// A service that is made without a configuration file names them alike.
func TestAServiceNamesWhatIsWrong(t *testing.T) {
	c := sandbox.Defaults()
	c.Limits.Memory, c.Egress.Connections = -1, 0
	_, err := sandbox.New(t.Context(), c, sandbox.Deps{})
	if want := "limits.memory: -1 is less than 16777216\negress.connections: 0 is less than 1"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandbox.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
