package warm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// TrustPath is where sandboxes find the certificates that they are to trust.
const TrustPath = "/etc/fairlead/certificates.pem"

// openNetwork gives the sandbox its way out, if it is to have one. There is no
// network device and no route: all there is inside is a listener, which is served
// out here.
func (s *sandbox) openNetwork(deadline time.Time) error {
	if s.spec.Network == "" {
		return nil
	}
	if s.r.network == nil {
		return errors.New("the sandbox is to have a network, and this node gives none")
	}
	l, err := s.listener(deadline)
	if err != nil {
		return fmt.Errorf("open the sandbox's way out: %w", err)
	}
	s.out, err = s.r.network(s.spec, l)
	if err != nil {
		return errors.Join(fmt.Errorf("serve the sandbox's way out: %w", err), l.Close())
	}
	return nil
}

// listener asks init for it. No command runs yet, so init is still what it was, and
// says nothing else.
func (s *sandbox) listener(deadline time.Time) (net.Listener, error) {
	if err := s.send(wire.EncodeID(wire.Listen, 0)); err != nil {
		return nil, err
	}
	if err := s.socket.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	reply, files, err := s.read()
	if err != nil || reply.Kind != wire.Listening || len(files) != 1 {
		closeAll(files)
		return nil, fmt.Errorf("init did not hand it over: %w: %s", errors.Join(err, wire.ErrMalformed), s.complaint())
	}
	f := os.NewFile(uintptr(files[0]), "way out")
	l, err := net.FileListener(f)
	return l, errors.Join(err, f.Close(), s.socket.SetReadDeadline(time.Time{}))
}
