package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// dial connects to the proxy.
func (w *world) dial() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
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
// In HTTP/2 that one has a lock that readers and cancelled callers need as well.
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
	c := w.dial()
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

// Some servers answer while they still read: what they have not read yet is theirs all the same.
func TestAnAnswerThatComesEarlyTakesNothingFromTheRequest(t *testing.T) {
	const part, parts = "a part of the body", 100
	w := newWorld(t, func(a, b int) []Rule {
		return append(rawRule(a, b), Rule{Host: "cut.example.com", Ports: []int{b}, TLS: Intercept})
	})
	echo := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		both := http.NewResponseController(rw)
		_, _ = both.EnableFullDuplex(), both.Flush()
		b := make([]byte, len(part))
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				return
			}
			_, _ = rw.Write(b)
			_ = both.Flush()
		}
	})
	w.web.Config.Handler, w.secure.Config.Handler = echo, echo
	for _, x := range []struct {
		name, target string
		dial         func() net.Conn
	}{
		{"plain", fmt.Sprintf("http://web.example.com:%d/", port(w.web)), w.dial},
		{"inside TLS", "/", func() net.Conn { return w.tls("cut.example.com", port(w.secure)) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := x.dial()
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: cut.example.com:%d\r\nTransfer-Encoding: chunked\r\n\r\n", x.target, port(w.secure))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(part))
			for i := range parts {
				fmt.Fprintf(c, "%x\r\n%s\r\n", len(part), part)
				if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != part {
					t.Fatalf("part %d: %q, %v", i, b, err)
				}
			}
			_, _ = io.WriteString(c, "0\r\n\r\n")
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("the end: %q, %v", rest, err)
			}
			if e := w.event(); e.Outcome != Done || e.Sent != int64(parts*len(part)) || e.Received != e.Sent {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// Who refuses a request before its end is heard, although the rest still comes.
func TestAnAnswerThatReadsNothingArrives(t *testing.T) {
	port := hostile(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
	})
	w := worldOf(t, port, nil)
	c := w.dial()
	fmt.Fprintf(c, "POST http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n", port)
	go func() { _, _ = io.CopyN(c, endless{}, 10_000_000) }()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no\n" || err != nil {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
	w.closes()
}

// An invalid status cannot be passed on.
func TestAnswersWithoutAStatusAreToldAsSuch(t *testing.T) {
	port := hostile(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n")
	})
	w := worldOf(t, port, nil)
	status, body := w.ask(w.client(nil), http.MethodGet, fmt.Sprintf("http://web.example.com:%d/", port))
	if e := w.event(); status != http.StatusBadGateway || e.Outcome != Failed || e.Status != 0 {
		t.Errorf("%d %q, event %+v", status, body, e)
	}
}

// A tunnel in which TLS was not begun is no fault of the client's when something else ended it.
func TestTunnelsThatAreCutBeforeTLSAreToldAsSuch(t *testing.T) {
	for _, host := range []string{"web.example.com", "cut.example.com"} {
		for _, x := range []struct {
			name string
			by   func(*world, net.Conn)
			want Outcome
		}{
			{"the end of the sandbox", func(w *world, _ net.Conn) { w.closes() }, Aborted},
			{"a limit", func(*world, net.Conn) {}, Limited},
			{"the client", func(_ *world, c net.Conn) { _ = c.Close() }, Aborted},
		} {
			t.Run(host+" by "+x.name, func(t *testing.T) {
				l := Limits{}
				if x.want == Limited {
					l.Idle = 50 * time.Millisecond
				}
				w := newWorld(t, func(a, b int) []Rule {
					return append(rawRule(a, b), Rule{Host: "cut.example.com", Ports: []int{a}, TLS: Intercept})
				}, limited(l))
				resp, c, _ := w.raw(fmt.Sprintf("CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n", host, port(w.web)))
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("CONNECT: %d", resp.StatusCode)
				}
				x.by(w, c)
				if e := w.event(); e.Outcome != x.want {
					t.Errorf("event %+v", e)
				}
			})
		}
	}
}

// The bytes before an answer are ignored, and a client that does not read would keep the
// proxy holding it.
func TestWhatComesBeforeAnAnswerIsNotPassedOn(t *testing.T) {
	port := hostile(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nProxy-Authenticate: Basic\r\n"+strings.Repeat("a: b\r\n", 3000)+"\r\n")
		_, _ = c.Read(make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
	})
	w := worldOf(t, port, nil)
	c := w.dial()
	b := bufio.NewReader(c)
	fmt.Fprintf(c, "POST http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", port)
	resp, err := http.ReadResponse(b, nil)
	if err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("the body is not requested: %+v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "hello")
	if resp, err = http.ReadResponse(b, nil); err != nil || resp.StatusCode != http.StatusOK || fields(resp.Header) > 10 {
		t.Fatalf("got %.300s, %v", fmt.Sprint(resp), err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "fine" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// What is wrong with a request is not told as a fault of the host.
func TestRequestsThatDoNotEndAreToldAsSuch(t *testing.T) {
	for _, x := range []struct {
		name, rest string
		gone       bool
		want       Outcome
	}{
		{"a client that goes away", "Content-Length: 100\r\n\r\nhello", true, Aborted},
		{"a client that goes away amid chunks", "Transfer-Encoding: chunked\r\n\r\n64\r\nhello", true, Aborted},
		{"chunks that are none", "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello", false, BadRequest},
	} {
		t.Run(x.name, func(t *testing.T) {
			begun := make(chan struct{})
			port := hostile(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 1000))
				close(begun)
				_, _ = io.Copy(io.Discard, c)
			})
			w := worldOf(t, port, nil)
			c := w.dial()
			fmt.Fprintf(c, "POST http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n%s", port, x.rest)
			if x.gone {
				<-begun
				_ = c.Close()
			}
			if e := w.event(); e.Outcome != x.want || e.Message == "" {
				t.Errorf("event %+v", e)
			}
		})
	}
}
