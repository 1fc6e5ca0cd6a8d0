package sandbox_test

import (
	"errors"
	"fmt"
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

// mapping is a workspace with the attacker program, which may hold no more than a few files.
func mapping(t *testing.T, level string, change func(*sandbox.Config)) *client {
	t.Helper()
	c := open(t, level, change, func(c *sandbox.Config) { c.Limits.FileSize, c.Limits.WorkspaceBytes = 8<<20, 24<<20 })
	program, err := os.ReadFile(attacker(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.write(t, "attacker", string(program), func(w *sandboxv1.WriteFileStart) { w.Mode = 0o755 }); err != nil {
		t.Fatal(err)
	}
	return c
}

// Programs may be replaced while they run, with all that they have mapped. Where nobody sees how large that was, they are
// not ended for what it could have been; nor for what they write, as long as there is room for it.
func TestAProgramWhoseFilesAreReplacedIsNotEnded(t *testing.T) {
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := mapping(t, level, change)
		c.bash(t, "for i in $(seq 16); do head -c 300000 /dev/zero > found-$i; done")
		r := c.bash(t, "timeout 2 ./attacker keep found-mapping & sleep 0.5; ls found-* 2>/dev/null; for i in $(seq 3); do head -c 3000000 /dev/zero > new-$i; done; wait; echo unharmed")
		if r.out != "unharmed\n" {
			t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
		}
	})
}

// What others write is hidden no better than what a command writes itself: the service, other commands, which may end before
// anybody looks at them, and orphans.
func TestACommandThatHidesWhatOthersWriteIsEnded(t *testing.T) {
	const write = "head -c 3000000 /dev/zero > new-%[1]d && mv new-%[1]d found-%[1]d"
	for name, other := range map[string]func(t *testing.T, c *client, i int) error{
		"the service": func(t *testing.T, c *client, i int) error {
			_, err := c.write(t, fmt.Sprintf("found-%d", i), strings.Repeat("x", 3000000), nil)
			return err
		},
		"short commands": func(t *testing.T, c *client, i int) error {
			c.bash(t, fmt.Sprintf(write, i))
			return nil
		},
		"orphans of a command": func(t *testing.T, c *client, i int) error {
			_, err := c.write(t, fmt.Sprintf("go-%d", i), fmt.Sprintf(write, i), nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
				c := mapping(t, level, change)
				hides := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", `echo ready
					for i in {0..15}; do sh -c "(until [ -e go-$i ]; do sleep 0.1; done; . ./go-$i) &"; done
					exec ./attacker keep found-mapping`}})
				if _, err := hides.Recv(); err != nil {
					t.Fatal(err)
				}
				for tries, i := 0, 0; tries < 60 && i < 16; tries++ {
					if err := other(t, c, i); err == nil {
						i++ // else it has not hidden all of them yet, or was ended
					}
					<-time.After(50 * time.Millisecond)
				}
				if r, err := follow(hides); err != nil || r.end() != "WORKSPACE_LIMIT" {
					t.Errorf("%q %q %v %v", r.out, r.err, r.ExecExited, err)
				}
			})
		})
	}
}

// A command may hide what was there before it, which takes no more than it did; then it may not add as much again.
func TestACommandThatHidesWhatWasThereMayNotAddAsMuch(t *testing.T) {
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := mapping(t, level, change)
		c.bash(t, "for i in $(seq 5); do head -c 3000000 /dev/zero > found-$i; done")
		r := c.bash(t, "timeout 6 ./attacker keep found-mapping & sleep 1; echo hidden; for i in $(seq 5); do head -c 3000000 /dev/zero > new-$i; done; wait")
		if r.out != "hidden\n" || r.end() != "WORKSPACE_LIMIT" {
			t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
		}
	})
}
