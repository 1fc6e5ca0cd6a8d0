package integration

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// The level and its parts are logged at the start and returned by the API.
func TestCapabilitiesAreTold(t *testing.T) {
	t.Parallel()
	everywhere := []string{
		"user-namespace", "pid-namespace", "network-namespace", "ipc-namespace", "uts-namespace", "mount-namespace", "cgroup-namespace",
		"no-network", "read-only-root", "masked-proc", "no-capabilities", "no-new-privileges", "seccomp", "workspace-limit", "wall-time-limit",
	}
	further := map[string][]string{
		sandbox.LevelFull:  {"memory-cgroup", "no-swap", "pids-cgroup", "cpu-cgroup", "uid-per-workspace"},
		sandbox.LevelBasic: {"memory-rlimit", "processes-rlimit"},
	}
	atLevel(t, func(t *testing.T, level string) {
		var log bytes.Buffer
		c := startWith(t, configuration(t, level), sandbox.Deps{Log: slog.New(slog.NewJSONHandler(&log, nil))})
		r, err := c.workspaces.GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
		if err != nil || r.GetLevel() != level || r.GetDriver() != "bubblewrap" {
			t.Fatalf("%v, %v", r, err)
		}
		for _, part := range append(everywhere, further[level]...) {
			if !slices.Contains(r.GetIncludes(), part) {
				t.Errorf("%s is not among %q", part, r.GetIncludes())
			}
		}
		c.stop() // no more writes to the log
		var told struct {
			Level    string `json:"isolation_level"`
			Includes []string
		}
		for line := range bytes.Lines(log.Bytes()) {
			if bytes.Contains(line, []byte(`"msg":"sandbox ready"`)) {
				if err := json.Unmarshal(line, &told); err != nil {
					t.Fatal(err)
				}
			}
		}
		if told.Level != level || !slices.Equal(told.Includes, r.GetIncludes()) {
			t.Errorf("the log has %+v, others are told %q", told, r.GetIncludes())
		}
	})
}
