package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// passing are the prefixes of short-lived folders below the data directory that probe what works here. The
// service and the package quota make them.
var passing = []string{".probe-", ".quota-"}

// PassingFolder makes a folder below a data directory that the next start removes if a crash leaves it.
func PassingFolder(data string) (string, error) { return os.MkdirTemp(data, passing[0]) }

// clearPassing removes the short-lived folders of an earlier service.
func (n *Node) clearPassing() error {
	entries, err := os.ReadDir(n.o.Dir)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	for _, d := range entries {
		for _, p := range passing {
			if strings.HasPrefix(d.Name(), p) {
				err = errors.Join(err, erase.All(filepath.Join(n.o.Dir, d.Name())))
			}
		}
	}
	return err
}

// clearLeftovers removes what a crash left in workspaces. Leftovers can be as large as a file may be, and a
// workspace may stay unused for long. Anything that remains is removed at the workspace's next use. It runs
// before the node serves calls.
func (n *Node) clearLeftovers() {
	keys, err := n.byAge()
	if err != nil {
		n.o.Log.Error("cannot list the workspaces to remove the leftovers of a crash", "error", err)
	}
	for _, k := range keys {
		if err := newSession(n, k).clearLeftovers(); err != nil {
			n.o.Log.Warn("cannot remove the leftovers of a crash in a workspace", "session", k.Session, "error", err)
		}
	}
}

func (s *session) clearLeftovers() (err error) {
	if s.node.o.Tidy != nil {
		err = s.node.o.Tidy(s.path("snapshots"))
	}
	if _, at := os.Lstat(s.path(interruptedFile)); !errors.Is(at, os.ErrNotExist) {
		return errors.Join(err, at) // the staging folder shows what became of changes
	}
	return errors.Join(err, s.workspace.clearStaging())
}
