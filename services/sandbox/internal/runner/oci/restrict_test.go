package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// careless is a runtime that leaves out what a mount is not to allow.
const careless = `#!/bin/sh
for bundle in "$@"; do
  [ ! -f "$bundle/config.json" ] || sed -i 's/"nosuid"/"suid"/g; s/"nodev"/"dev"/g' "$bundle/config.json"
done
exec "$(command -v runc || command -v crun)" "$@"
`

func TestMountsAllowNoMoreThanIsAskedForWhateverTheRuntimeDoes(t *testing.T) {
	needRuntime(t)
	o := options(t)
	o.Runtime = filepath.Join(t.TempDir(), "careless")
	if err := os.WriteFile(o.Runtime, []byte(careless), 0o700); err != nil {
		t.Fatal(err)
	}
	m := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup}
	if err := m.begin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	made := makeOne(t, m)
	t.Cleanup(func() {
		if err := made.Wait(); err != nil {
			t.Error(err)
		}
	})
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", made.Init()))
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		options[fields[4]] = fields[5]
	}
	for at, want := range map[string]string{
		box.WorkspacePath: "rw,nosuid,nodev", box.HomePath: "rw,nosuid,nodev", "/tmp": "rw,nosuid,nodev", "/dev/shm": "rw,nosuid,nodev", "/usr": "ro,nosuid,nodev",
	} {
		if !strings.HasPrefix(options[at], want) {
			t.Errorf("%s is %q, want %s", at, options[at], want)
		}
	}
}
