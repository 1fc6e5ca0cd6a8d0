package box

import "slices"

// Tree is a read-only folder of a session beside its workspace, at TreesPath and its name. Its digest names
// its content.
type Tree struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Trees are the trees that a node has. Implementations are safe for concurrent use.
type Trees interface {
	// Mounts returns the mounts of trees, outer ones first, and counts that as a use of each. It returns
	// ErrNoTree for a tree that the node lacks.
	Mounts(all []Tree) ([]Mount, error)
	// Tidy removes trees that were unused for too long. Those in use are not, by their digests.
	Tidy(used []string)
}

// treeMounts returns the mounts of trees.
func (n *Node) treeMounts(all []Tree) ([]Mount, error) {
	if len(all) == 0 {
		return nil, nil
	}
	if n.o.Trees == nil {
		return nil, ErrTrees
	}
	return n.o.Trees.Mounts(all)
}

// trees returns the mounts of the session's trees. mu is held.
func (ws *workspace) trees() ([]Mount, error) { return ws.node.treeMounts(ws.meta.Trees) }

// keepTrees removes trees that no session uses. A session whose commands run is in memory.
func (n *Node) keepTrees() {
	if n.o.Trees == nil {
		return
	}
	var used []string
	for _, s := range n.sessions.list() {
		if !s.workspace.mu.TryLock() {
			return // it may have any: the next round looks again
		}
		if m := s.workspace.meta; m != nil {
			for _, t := range m.Trees {
				used = append(used, t.Digest)
			}
		}
		s.workspace.mu.Unlock()
	}
	slices.Sort(used)
	n.o.Trees.Tidy(slices.Compact(used))
}
