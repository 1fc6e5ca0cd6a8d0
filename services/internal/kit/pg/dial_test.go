package pg

import (
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAConnectionThatTakesNothingIsLostAfterAWhile: the kernel gives up on a peer that leaves what was sent without an
// answer, here by a window that stays closed, long before its own patience of a quarter of an hour ends.
func TestAConnectionThatTakesNothingIsLostAfterAWhile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no such option")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	taken := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			taken <- c
		}
	}()
	c, err := dialer(time.Second).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	defer func() { _ = (<-taken).Close() }() // nothing is read from it
	lost := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				lost <- err
				return
			}
		}
	}()
	select {
	case err := <-lost:
		if !errors.Is(err, unix.ETIMEDOUT) || !Unavailable(err) {
			t.Errorf("the connection ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it is still open")
	}
}
