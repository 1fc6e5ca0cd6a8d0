package egress

import (
	"net"
	"testing"
)

// slow accepts a connection when it may.
type slow struct {
	*net.TCPListener

	may chan struct{}
}

func (s slow) Accept() (net.Conn, error) {
	c, err := s.TCPListener.Accept()
	if err == nil {
		<-s.may
	}
	return c, err
}

// A command connects and ends at once: what it began is known nevertheless.
func TestCatchUpKnowsWhatHasConnected(t *testing.T) {
	w := newWorld(t, cut)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const made = 20
	begun := make(chan struct{}, made)
	may := make(chan struct{})
	s := w.proxy.Serve(slow{l.(*net.TCPListener), may}, &Policy{}, Client{Begin: func(string, bool) (Use, error) {
		begun <- struct{}{}
		return Use{}, nil
	}})
	defer func() { _ = s.Close() }()
	for round := range 3 {
		for range made {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
		}
		done := make(chan struct{})
		go func() { s.CatchUp(); close(done) }()
		for range made {
			may <- struct{}{}
		}
		<-done
		if n := len(begun); n != made {
			t.Errorf("round %d: %d of %d are known", round, n, made)
		}
		for len(begun) > 0 {
			<-begun
		}
	}
}
