package box

import (
	"errors"
	"os"
)

// clearLeftovers removes what a crash left in workspaces. Leftovers can be as large as a file may be, and a
// workspace may stay unused for long. Anything that remains is removed at the workspace's next use. It runs
// before the node serves calls.
func (n *Node) clearLeftovers() {
	keys, err := n.dir.byAge()
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
	if s.node.o.Upkeep.Tidy != nil {
		err = s.node.o.Upkeep.Tidy(s.path("snapshots"))
	}
	if _, at := os.Lstat(s.path(interruptedFile)); !errors.Is(at, os.ErrNotExist) {
		return errors.Join(err, at) // the staging folder shows what became of changes
	}
	return errors.Join(err, s.workspace.clearStaging())
}
