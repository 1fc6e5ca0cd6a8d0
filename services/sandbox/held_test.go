package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// While init starts a command, nobody can look at that: it hides nothing, and ends no other.
func TestManyCommandsThatStartEndNoOther(t *testing.T) {
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := open(t, level, change)
		lasts := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "echo ready; until [ -e stop ]; do sleep 0.1; done; echo unharmed"}})
		if _, err := lasts.Recv(); err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		until := time.Now().Add(3 * time.Second)
		for range 3 {
			work.Go(func() {
				for time.Now().Before(until) {
					if r, err := c.exec(t.Context(), "true", nil); err != nil || r.end() != "" {
						t.Errorf("%v %v", r.ExecExited, err)
						return
					}
				}
			})
		}
		work.Wait()
		if _, err := c.write(t, "stop", "", nil); err != nil {
			t.Fatal(err)
		}
		if r, err := follow(lasts); err != nil || !strings.HasSuffix(r.out, "unharmed\n") {
			t.Errorf("%q %v %v", r.out, r.ExecExited, err)
		}
	})
}

// Who keeps the folder of a mount may put other files in the place of those that commands have open, run
// or have mapped: none of them can add to what is there by it.
func TestFilesOfAMountThatNobodyMayChangeAreNobodysDeletedOnes(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		c, dir := mounted(t, d, func(c *sandbox.Config) { c.Limits.WorkspaceBytes = 24 << 20 })
		program, err := os.ReadFile(attacker(t))
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(dir, "books", "kept")
		if err := os.WriteFile(kept, append(program, make([]byte, 40<<20)...), 0o755); err != nil {
			t.Fatal(err)
		}
		lasts := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "exec 3<mnt/books/kept; mnt/books/kept keep unread & sleep 0.5; echo ready; sleep 2; kill $! && echo unharmed"}})
		if _, err := lasts.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(kept+"-new", nil, 0o600), os.Rename(kept+"-new", kept)); err != nil {
			t.Fatal(err)
		}
		if r, err := follow(lasts); err != nil || !strings.HasSuffix(r.out, "unharmed\n") {
			t.Errorf("%q %q %v %v", r.out, r.err, r.ExecExited, err)
		}
	})
}
