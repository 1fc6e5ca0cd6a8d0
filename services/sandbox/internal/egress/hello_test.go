package egress

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// hello is how a client begins TLS with a host.
func hello(t testing.TB, host string) string {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(a, &tls.Config{ServerName: host, InsecureSkipVerify: true}).HandshakeContext(context.Background())
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(b, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(b, body); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	<-done
	_ = a.Close()
	return string(head) + string(body)
}

// clock is one that a test moves.
type clock struct{ at time.Time }

func fixed() *clock { return &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
