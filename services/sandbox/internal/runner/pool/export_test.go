package pool

import "github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"

// Hear has a workspace's sandbox hear a packet of its init.
func (r *Runner) Hear(workspace string, packet []byte) error {
	r.mu.Lock()
	s := r.sandboxes[workspace][0]
	r.mu.Unlock()
	reply, err := wire.DecodeReply(packet)
	if err != nil {
		return err
	}
	return s.deliver(reply, &[]int{})
}
