package cluster

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo sends back what it gets, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// said sends a word and returns what comes back.
func said(c net.Conn, word string) (string, error) {
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	back := make([]byte, len(word))
	_, err := io.ReadFull(c, back)
	return string(back), err
}

func TestAProxyPassesOnAndCuts(t *testing.T) {
	p, err := newProxy(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	one, two := dial(t, p), dial(t, p)
	for _, c := range []net.Conn{one, two} {
		if got, err := said(c, "hello"); got != "hello" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := p.Cut(); n != 2 {
		t.Errorf("%d connections were cut, want 2", n)
	}
	for _, c := range []net.Conn{one, two} {
		if got, err := said(c, "hello"); err == nil {
			t.Errorf("a connection that was cut says %q", got)
		}
	}
	if got, err := said(dial(t, p), "again"); got != "again" || err != nil {
		t.Errorf("a connection after the cut: %q, %v", got, err)
	}
}

func TestAProxyToNobodyClosesConnections(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	p, err := newProxy(t.Context(), "tcp", gone)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got, err := said(dial(t, p), "hello"); err == nil {
		t.Errorf("unexpected text %q", got)
	}
}

func TestAProxyThatStallsLosesNothing(t *testing.T) {
	p, err := newProxy(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	old := dial(t, p)
	if got, err := said(old, "hello"); got != "hello" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	p.Stall()
	p.Stall() // one stall is as good as two
	fresh := dial(t, p)
	for _, c := range []net.Conn{old, fresh} {
		if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if got, err := said(c, "again"); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a stalled connection says %q, %v", got, err)
		}
	}
	p.Flow()
	for _, c := range []net.Conn{old, fresh} {
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len("again"))
		if _, err := io.ReadFull(c, back); string(back) != "again" || err != nil {
			t.Errorf("after the stall a connection says %q, %v", back, err)
		}
	}
}
