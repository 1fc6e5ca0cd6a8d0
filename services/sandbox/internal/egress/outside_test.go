package egress

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hostile is a server outside that does what serve says with its first connection.
func hostile(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			t.Cleanup(func() { _ = c.Close() })
			serve(c)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// worldOf is one with a single port outside, in plain HTTP at web.example.com and in TLS at
// up.example.com, whose issuer it trusts.
func worldOf(t *testing.T, port int, issuer *Authority) *world {
	rules := []Rule{opened(port), {Host: "web.example.com", Ports: []int{port}}, {Host: "up.example.com", Ports: []int{port}, TLS: Upgrade}}
	return newWorld(t, func(int, int) []Rule { return rules }, func(w *world, o *Options) {
		o.Ceiling = []Rule{opened(port), {Host: "*", Ports: []int{port}}}
		if issuer != nil {
			w.roots.AppendCertsFromPEM(issuer.PEM())
		}
	})
}

// closes closes the server, which must not take long.
func (w *world) closes() {
	w.t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- w.server.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			w.t.Error(err)
		}
	case <-time.After(5 * time.Second):
		w.t.Fatal("the server does not close")
	}
}

// A server that takes all the bytes it is offered and then reads none holds up the writer.
// In HTTP/2 that one has a lock that whoever reads, or gives up, wants as well.
func TestAServerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	issuer := authority(t)
	deaf := make(chan struct{})
	port := hostile(t, func(c net.Conn) {
		defer close(deaf)
		answerAndGoDeaf(tls.Server(c, &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return issuer.certificate(h.ServerName)
		}}))
	})
	w := worldOf(t, port, issuer)
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	fmt.Fprintf(c, "POST http://up.example.com:%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", port)
	<-deaf
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(c, endless{}) // until nothing goes on
	w.closes()
	w.until("no connection is left outside", func() bool { return len(w.server.places) == 0 })
}

func answerAndGoDeaf(c *tls.Conn) {
	if c.Handshake() != nil {
		return
	}
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
		return
	}
	f := http2.NewFramer(c, c)
	_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = f.WriteSettingsAck()
	_ = f.WriteWindowUpdate(0, 1<<30)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if _, ok := frame.(*http2.HeadersFrame); ok {
			break
		}
	}
	var status bytes.Buffer
	_ = hpack.NewEncoder(&status).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: status.Bytes(), EndHeaders: true})
	for range 400 {
		_ = f.WriteData(1, false, make([]byte, 10_000))
	}
}
