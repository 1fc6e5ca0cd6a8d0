package placement

import "github.com/fairlead/fairlead/services/session/internal/store"

// Replace returns a node that answers, instead of one that does not: for a workspace that
// was never made, because no file is waited for. It returns "" if the node answers or no
// other one does.
func (n *Nodes) Replace(k store.Key, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replace(k, name)
}

// replace is Replace. mu is held.
func (n *Nodes) replace(k store.Key, name string) string {
	if n.of(name).since.IsZero() {
		return ""
	}
	to := n.choose(k, name)
	if to == "" || !n.states[to].since.IsZero() {
		return ""
	}
	return to
}
