package pool

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// TrustPath is the path in sandboxes of the trusted certificates.
const TrustPath = "/etc/fairlead/certificates.pem"

// openNetwork gives the sandbox its way out, if it is to have one. There is no network device and no route,
// only a listener inside that is served outside.
func (s *sandbox) openNetwork(deadline time.Time) error {
	if s.spec.Network == "" && (!s.spec.Spare || s.r.network == nil) {
		return nil
	}
	if s.r.network == nil {
		return errNoNetwork
	}
	l, err := s.listener(deadline)
	if err != nil {
		return fmt.Errorf("open the sandbox's way out: %w", err)
	}
	if s.spec.Network == "" {
		s.out, s.pendingListener = l, l // the command that takes the sandbox over may have a network
		return nil
	}
	return s.serveNetwork(l)
}

var errNoNetwork = errors.New("the sandbox is to have a network, and this node gives none")

func (s *sandbox) serveNetwork(l net.Listener) error {
	out, err := s.r.network(s.spec, l)
	if err != nil {
		return errors.Join(fmt.Errorf("serve the sandbox's way out: %w", err), l.Close())
	}
	s.out = out
	return nil
}

// become gives an unused sandbox to another workspace, with that workspace's configuration. Properties
// fixed at its creation cannot change. After an error the sandbox must be ended. The runner's mu is held.
func (s *sandbox) become(to box.Sandbox) error {
	was := s.spec
	same := was
	same.ID, same.Workspace, same.Home, same.Tenant, same.Session, same.User, same.Spare = to.ID, to.Workspace, to.Home, to.Tenant, to.Session, to.User, to.Spare
	same.Network, same.Limits = to.Network, to.Limits
	l := to.Limits
	if same != to || l.TmpBytes != was.Limits.TmpBytes || l.ShmBytes != was.Limits.ShmBytes || (was.Network != "" && was.Network != to.Network) {
		return errors.New("it was made for something else")
	}
	s.spec = to
	if was.Limits != l {
		if err := s.lowerLimits(l); err != nil {
			return err
		}
	}
	unserved := s.pendingListener
	s.pendingListener = nil
	switch {
	case was.Network == to.Network && unserved == nil:
		return nil
	case to.Network == "":
		s.out = nil
		return unserved.Close()
	case unserved == nil:
		return errors.New("it was made without a way out")
	}
	return s.serveNetwork(unserved)
}

// listener asks init for the listener. No command runs yet, so init is unharmed and sends nothing else.
func (s *sandbox) listener(deadline time.Time) (net.Listener, error) {
	if err := s.init.send(wire.EncodeID(wire.Listen, 0)); err != nil {
		return nil, err
	}
	if err := s.init.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	reply, files, err := s.init.read()
	elsewhere, ok := s.hold.body.(RemoteListener)
	if ok && err == nil && reply.Kind == wire.Listening && len(files) == 0 {
		return elsewhere.Listener(), s.init.SetReadDeadline(time.Time{})
	}
	if err != nil || reply.Kind != wire.Listening || len(files) != 1 {
		closeAll(files)
		return nil, fmt.Errorf("init did not send it: %w: %s", errors.Join(err, wire.ErrMalformed), s.lastOutput())
	}
	f := os.NewFile(uintptr(files[0]), "way out")
	l, err := net.FileListener(f)
	return l, errors.Join(err, f.Close(), s.init.SetReadDeadline(time.Time{}))
}
