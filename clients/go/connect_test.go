package fairlead_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairlead "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/clienttest"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAWaitOutlivesAnyNumberOfCuts(t *testing.T) {
	s := &script{play: func(n int, p player) error {
		if p.live(); n < 4*fast.Attempts {
			<-time.After(2 * fast.Most)
			return status.Error(codes.Unavailable, "a proxy ends what is quiet")
		}
		p.say("t", finished())
		return nil
	}}
	if end, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{}); err != nil || end == nil {
		t.Error(end, err)
	}
}

func TestClosingAClientEndsItsTurns(t *testing.T) {
	s := &script{play: func(_ int, p player) error {
		p.say("t", clienttest.Text("a"))
		<-p.Context().Done()
		return nil
	}}
	c := s.client(t, fairlead.Backoff{First: time.Hour, Most: time.Hour})
	_, err := c.Run(t.Context(), hello(), fairlead.Handlers{
		Event: func(*sessionv1.Event) { _ = c.Close() },
		Lost:  func(err error) { t.Error("it reconnects after", err) },
	})
	if status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

func TestTheFirstCallAfterTheServerIsBackSucceeds(t *testing.T) {
	s := &script{play: func(_ int, p player) error { p.say("t", finished()); return nil }}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := fairlead.Connect(address, fairlead.Config{Backoff: fairlead.Backoff{First: time.Millisecond, Most: 20 * time.Millisecond, Attempts: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lost := 0
	var back time.Time
	_, err = c.Run(t.Context(), hello(), fairlead.Handlers{Lost: func(error) {
		if lost++; lost == 10 { // the connection has been tried in vain
			s.serve(t, address)
			back = time.Now()
		}
	}})
	if took := time.Since(back); err != nil || took > 400*time.Millisecond {
		t.Errorf("%v after %v", err, took)
	}
}

func TestAFollowerHasABackoffOfItsOwn(t *testing.T) {
	s := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE), BreakAfter: []int{3}}).Start(t)
	f := fairlead.RunTurn(t.Context(), connect(t, s).Sessions, hello(), fairlead.Options{})
	defer f.Close()
	n := 0
	for range f.Events() {
		n++
	}
	if n != 7 || f.Err() != nil {
		t.Error(n, f.Err())
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ address, target string }{
		{"127.0.0.1:9090", "dns:///127.0.0.1:9090"},
		{"https://[::1]:9090", "dns:///[::1]:9090"},
		{"dns:9090", "dns:///dns:9090"},
		{"https://example.com", ""},
		{"https://example.com:443/", ""},
		{"http://example.com:80", ""},
		{"unix:///a", ""},
		{"", ""},
	} {
		client, err := fairlead.Connect(c.address, fairlead.Config{})
		if c.target == "" {
			if err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
				t.Errorf("%s: %v", c.address, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.address, err)
			continue
		}
		if conn, ok := client.Conn().(*grpc.ClientConn); !ok || conn.Target() != c.target {
			t.Errorf("%s: %s", c.address, conn.Target())
		}
		_ = client.Close()
	}
}
