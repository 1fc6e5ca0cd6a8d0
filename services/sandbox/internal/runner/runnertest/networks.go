package runnertest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// networkTests check the way out of a sandbox: what comes out of it, however it is carried. Drivers do not
// decide what may be reached.
var networkTests = []test{
	{"a connection carries both directions to their ends", []need{networks}, testBothDirections},
	{"an unread connection does not block other connections", []need{networks}, testSlowConnection},
	{"many connections are carried at once, again and again", []need{networks}, testManyConnections},
	{"a connection that is refused ends, and the next one is carried", []need{networks}, testRefusedConnection},
	{"connections end with the command that made them", []need{networks}, testConnectionsEnd},
	{"a sandbox that has no network has no way out", []need{networks}, testNoWayOut},
}

// outside serves the way out of sandboxes.
type outside struct {
	handle func(net.Conn)

	work  sync.WaitGroup
	mu    sync.Mutex // guards what follows
	conns []net.Conn
}

// serve implements Options.Network.
func (o *outside) serve(_ box.Sandbox, l net.Listener) (io.Closer, error) {
	o.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns = append(o.conns, c)
			o.mu.Unlock()
			o.work.Go(func() {
				o.handle(c)
				_ = c.Close()
			})
		}
	})
	return closer(func() error {
		err := l.Close()
		o.mu.Lock()
		for _, c := range o.conns {
			_ = c.Close()
		}
		o.mu.Unlock()
		o.work.Wait()
		return err
	}), nil
}

type closer func() error

func (c closer) Close() error { return c() }

// networked returns a runner whose sandboxes have a network, and a command in one.
func networked(t *testing.T, s Subject, handle func(net.Conn)) (box.Runner, box.Command) {
	t.Helper()
	o := &outside{handle: handle}
	c := s.command(t, "")
	c.Sandbox.Network = "some"
	return s.New(t, Options{Network: o.serve}), c
}

// client returns a command that runs lines of Python; `way()` makes a connection.
func client(c box.Command, lines ...string) box.Command {
	c.Argv = []string{"python3", "-c", "import socket, sys\ndef way(): return socket.create_connection(('127.0.0.1', 3128))\n" + strings.Join(lines, "\n")}
	return c
}

// echo sends back all received data after the end of the input.
func echo(c net.Conn) {
	all, err := io.ReadAll(c)
	if err != nil {
		return
	}
	_, _ = c.Write(all)
}

func testBothDirections(t *testing.T, s Subject) {
	r, c := networked(t, s, echo)
	run(t, r, client(c,
		`x = way(); data = bytes(range(256)) * 12345`,
		`x.sendall(data); x.shutdown(socket.SHUT_WR)`,
		`back = b''.join(iter(lambda: x.recv(65536), b''))`,
		`print(len(back), back == data)`,
	)).ran(t, "what comes back", "3160320 True\n")
}

func testSlowConnection(t *testing.T, s Subject) {
	waits := make(chan struct{})
	var once sync.Once
	r, c := networked(t, s, func(c net.Conn) {
		first := false
		once.Do(func() { first = true })
		if first {
			<-waits
			return
		}
		echo(c)
	})
	t.Cleanup(func() { close(waits) }) // before the runner is closed
	x := run(t, r, client(c,
		`slow = way(); slow.settimeout(0.5); sent = 0`,
		`try:`,
		`  while True: sent += slow.send(bytes(65536))`,
		`except TimeoutError: pass`,
		`assert sent < 64 << 20, sent`,
		`sys.stdout.write('x' * (2 << 20)); sys.stdout.flush()`,
		`y = way(); y.sendall(b'fine'); y.shutdown(socket.SHUT_WR)`,
		`sys.stdout.write(y.recv(9).decode())`,
	))
	if want := strings.Repeat("x", 2<<20) + "fine"; x.out != want || x.Status != 0 {
		t.Errorf("%d bytes of output, %q, %+v", len(x.out), x.err, x.Exit)
	}
}

func testManyConnections(t *testing.T, s Subject) {
	r, c := networked(t, s, func(c net.Conn) {
		one := make([]byte, 1)
		for {
			if _, err := c.Read(one); err != nil {
				return
			}
			_, _ = c.Write(bytes.ToUpper(one))
		}
	})
	run(t, r, client(c,
		`for i in range(10):`,
		`  all = [way() for _ in range(50)]`,
		`  for x in all: x.sendall(b'a')`,
		`  for x in all: assert x.recv(1) == b'A'`,
		`  for x in all: x.close()`,
		`print('done')`,
	)).ran(t, "500 connections", "done\n")
}

func testRefusedConnection(t *testing.T, s Subject) {
	var refused atomic.Bool
	r, c := networked(t, s, func(c net.Conn) {
		if refused.Swap(true) { // only the first connection is
			echo(c)
		}
	})
	run(t, r, client(c,
		`x = way()`,
		`try:`,
		`  assert x.recv(1) == b''`,
		`  while True: x.sendall(bytes(65536))`,
		`except ConnectionError: print('ended')`,
		`y = way(); y.sendall(b'fine'); y.shutdown(socket.SHUT_WR); print(y.recv(9).decode())`,
	)).ran(t, "one that is refused", "ended\nfine\n")
}

func testConnectionsEnd(t *testing.T, s Subject) {
	arrived, ended := make(chan struct{}, 3), make(chan error, 3)
	r, c := networked(t, s, func(c net.Conn) {
		arrived <- struct{}{}
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	p := launch(t, r, client(c, `all = [way() for _ in range(3)]`, `for x in all: x.sendall(b'x')`, `print('ready', flush=True); sys.stdin.read()`))
	for range 3 {
		<-arrived
	}
	p.Kill()
	finish(p)
	for range 3 {
		if err := <-ended; err != nil && !errors.Is(err, io.EOF) {
			t.Logf("one ended with %v", err) // a reset is an end
		}
	}
	run(t, r, with(c, "echo fine")).ran(t, "the next one", "fine\n")
}

func testNoWayOut(t *testing.T, s Subject) {
	r, c := networked(t, s, echo)
	c.Sandbox.Network = ""
	run(t, r, with(c, "(exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null || echo none")).ran(t, "without a network", "none\n")
}
