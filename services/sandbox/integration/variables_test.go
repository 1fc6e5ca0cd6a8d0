package integration

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// holding returns the files below a folder that contain a text.
func holding(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rememberValues stores the value of a variable as older versions did.
func rememberValues(t *testing.T, dir, value string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "workspace.json" {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var meta map[string]any
		if err := json.Unmarshal(raw, &meta); err != nil {
			return err
		}
		meta["environment"].(map[string]any)["variables"] = map[string]string{"TOKEN": value}
		if raw, err = json.Marshal(meta); err != nil {
			return err
		}
		return os.WriteFile(name, raw, 0o600)
	})
	if err != nil || len(holding(t, dir, value)) != 1 {
		t.Fatalf("the value is not in a file: %v", err)
	}
}

// TestVariablesOfAUserAreInNoFile restarts the service, which then asks for the variables again.
func TestVariablesOfAUserAreInNoFile(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		const value = "s3cret-value-of-ann"
		cfg := configuration(t, level)
		c := start(t, cfg)
		ensure := func() {
			t.Helper()
			if _, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
				Call: c.call(), Environment: &sandboxv1.WorkspaceEnvironment{Variables: map[string]string{"TOKEN": value}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		works := func() {
			t.Helper()
			if r, err := c.exec(t.Context(), "echo ${#TOKEN}", nil); err != nil || strings.TrimSpace(r.out) != strconv.Itoa(len(value)) { // its output is kept in a file
				t.Fatalf("a command has a value of %q bytes, %v", r.out, err)
			}
		}
		ensure()
		if found := holding(t, filepath.Dir(cfg.Data), value); len(found) > 0 {
			t.Errorf("the value is in %v", found)
		}
		works()
		c.stop()
		rememberValues(t, cfg.Data, value)
		c = start(t, cfg)
		if found := holding(t, filepath.Dir(cfg.Data), value); len(found) > 0 {
			t.Errorf("the value that an older version stored is in %v", found)
		}
		if _, err := c.exec(t.Context(), "echo ${#TOKEN}", nil); status.Code(err) != codes.Unavailable {
			t.Errorf("after a restart: %v", err)
		}
		ensure()
		works()
	})
}
