package box

import "fmt"

// SetNetwork sets the policy of what a session's commands may reach from now on;
// empty means nothing. Commands that run keep what they have: those to come have a
// sandbox of their own. The node must have been made with a Network.
func (n *Node) SetNetwork(c Call, generation int64, policy string) error {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitCall(c, generation); err != nil {
		return err
	}
	if err := s.fence(c.Epoch); err != nil {
		return err
	}
	if s.meta.Network == policy {
		return nil
	}
	m := *s.meta
	m.Network = policy
	if err := save(s.path(metaFile), m); err != nil {
		return fmt.Errorf("remember the network: %w", err)
	}
	s.meta = &m
	return nil
}
