package rpc_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// replica is one of several servers; it writes down the keys of the calls that it gets.
type replica struct {
	notes
	address string
	server  *grpc.Server
	mu      sync.Mutex
	keys    []string
}

func (r *replica) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.keys...)
}

// startReplica serves until the test ends. answer may be nil.
func startReplica(t *testing.T, address string, answer func() error) *replica {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, log := newJournal(t)
	r := &replica{address: l.Addr().String(), server: rpc.NewPeerServer(log, keys)}
	r.take = func(_ context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		r.mu.Lock()
		r.keys = append(r.keys, get(in, "request_id"))
		r.mu.Unlock()
		if answer != nil {
			if err := answer(); err != nil {
				return nil, err
			}
		}
		return in, nil
	}
	r.RegisterPublic(r.server)
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(l) }()
	t.Cleanup(func() {
		r.server.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// dialReplicas returns a connection to all of them.
func dialReplicas(t *testing.T, replicas ...*replica) *grpc.ClientConn {
	t.Helper()
	var addresses []string
	for _, r := range replicas {
		addresses = append(addresses, r.address)
	}
	cc, err := rpc.Dial(strings.Join(addresses, ", "), rpc.WithKeys(keys), rpc.WithFallback(principal.Default()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// eventually calls until done; connections are made in the background.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestCallsAreSpreadOverTheReplicasThatAnswer(t *testing.T) {
	a, b := startReplica(t, "127.0.0.1:0", nil), startReplica(t, "127.0.0.1:0", nil)
	cc := dialReplicas(t, a, b)
	call := func() {
		if _, err := take(t.Context(), cc, newNote("x")); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "both get calls", func() bool { call(); return len(a.calls()) > 2 && len(b.calls()) > 2 })

	a.server.Stop()
	before := len(b.calls())
	for range 20 {
		call()
	}
	if got := len(b.calls()) - before; got != 20 {
		t.Errorf("the replica that is left got %d of 20 calls", got)
	}

	again := startReplica(t, a.address, nil)
	eventually(t, "a replica that came back gets calls", func() bool { call(); return len(again.calls()) > 0 })
}

func TestACallWithAKeyIsMadeAgainAtTheNextReplica(t *testing.T) {
	dying := func() error { return apierr.New(codes.Unavailable, "test.fairlead.dev", "DYING", "dying") }
	for _, c := range []struct{ name, key string }{
		{"with the caller's key", "mine"},
		{"with a key that is made for it", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startReplica(t, "127.0.0.1:0", dying), startReplica(t, "127.0.0.1:0", nil)
			cc := dialReplicas(t, a, b)
			var sent *dynamicpb.Message
			eventually(t, "the dying one is asked first", func() bool {
				sent = newNote("x")
				sent.Set(note.Fields().ByName("request_id"), valueOf(c.key))
				got, err := take(t.Context(), cc, sent)
				if err != nil {
					return false // the other one was not connected yet
				}
				calls := a.calls()
				return len(calls) > 0 && calls[len(calls)-1] == get(got, "request_id")
			})
			if get(sent, "request_id") != c.key {
				t.Errorf("the caller's request was changed: %v", sent)
			}
		})
	}
}

func TestAListOfReplicasIsChecked(t *testing.T) {
	for _, list := range []string{"127.0.0.1:1,", "127.0.0.1:1,here", ",", "127.0.0.1:1,,127.0.0.1:2"} {
		if cc, err := rpc.Dial(list); err == nil || !strings.Contains(err.Error(), "not an address") {
			t.Errorf("%q: %v, %v", list, cc, err)
		}
	}
}

func TestNoReplicaIsUnavailable(t *testing.T) {
	a, b := startReplica(t, "127.0.0.1:0", nil), startReplica(t, "127.0.0.1:0", nil)
	cc := dialReplicas(t, a, b)
	a.server.Stop()
	b.server.Stop()
	if _, err := take(t.Context(), cc, newNote("x")); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
}
