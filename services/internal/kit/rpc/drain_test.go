package rpc_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

func TestDrain(t *testing.T) {
	d := &diary{}
	a := &part{name: "a", events: d}
	streaming := make(chan struct{})
	b := &part{name: "b", events: d, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(streaming)
		select {
		case <-rpc.Draining(r.Context()):
			d.add("http stream ended")
		case <-r.Context().Done():
			d.add("http stream cut")
		}
	})}
	a.exchange = func(s grpc.ServerStream) error {
		if err := s.SendMsg(newNote("open")); err != nil {
			return err
		}
		<-s.Context().Done()
		d.add("stream ended")
		return s.Context().Err()
	}
	quiet := rpc.Config{Auth: open, Public: "127.0.0.1:0", HTTP: "127.0.0.1:0", Grace: time.Minute}
	r := serve(t, quiet, a, silent{web{b}})
	s, err := exchange(t.Context(), r.dial(t, "public"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(dynamicpb.NewMessage(note)); err != nil {
		t.Fatal(err)
	}
	page := make(chan struct{})
	go func() { defer close(page); r.get(t, "http", "/stream") }()
	<-streaming

	start := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("the drain took %s although everything ended at once", took)
	}
	<-page
	err = s.RecvMsg(dynamicpb.NewMessage(note))
	if apierr.Code(err) != codes.Unavailable || apierr.Reason(err) != apierr.ReasonDraining {
		t.Errorf("the stream ended with %v", err)
	}
	got := d.read()
	if len(got) != 6 || got[0] != "http stream ended" || got[1] != "stream ended" || got[4] != "b closed" || got[5] != "a closed" {
		t.Errorf("order: %q", got)
	}
}

// silent is a part without RPCs, which would clash with its neighbor's.
type silent struct{ web }

func (silent) RegisterPublic(grpc.ServiceRegistrar) {}

func (silent) RegisterPeer(grpc.ServiceRegistrar) {}

func TestGraceIsOver(t *testing.T) {
	d := &diary{}
	p := &part{name: "a", events: d}
	entered := make(chan struct{})
	p.take = func(ctx context.Context, _ *dynamicpb.Message) (*dynamicpb.Message, error) {
		close(entered)
		<-ctx.Done() // cancelled by force only
		d.add("handler returned")
		return nil, ctx.Err()
	}
	r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", Grace: 50 * time.Millisecond}, p)
	cc := r.dial(t, "public")
	answer := make(chan error, 1)
	go func() {
		_, err := take(t.Context(), cc, newNote("x"))
		answer <- err
	}()
	<-entered
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := <-answer; apierr.Code(err) == codes.OK {
		t.Error("the call succeeded")
	}
	if got := d.read(); len(got) != 3 || got[0] != "handler returned" || got[2] != "a closed" {
		t.Errorf("order: %q, want Close after the handler", got)
	}
	if len(r.log.lines("level=WARN", "end of the grace period")) != 1 {
		t.Error("the log does not say that requests were cut")
	}
}

func TestUnaryCallsFinish(t *testing.T) {
	p := &part{name: "a", events: &diary{}}
	entered, release := make(chan struct{}), make(chan struct{})
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		close(entered)
		select {
		case <-release:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", Grace: patience}, p)
	cc := r.dial(t, "public")
	answer, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := take(t.Context(), cc, newNote("x"))
		answer <- err
	}()
	<-entered
	w, err := healthv1.NewHealthClient(cc).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { stopped <- r.stop() }()
	for err == nil { // until the drain has ended the stream
		_, err = w.Recv()
	}
	close(release)
	if err := <-answer; err != nil {
		t.Errorf("a call that ran when the drain began: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A handler that is stuck in Recv or Send does not see the end of its context; the end of the grace frees it.
func TestAStuckStreamIsCut(t *testing.T) {
	d := &diary{}
	p := &part{name: "a", events: d}
	for name, stuck := range map[string]func(grpc.ServerStream) error{
		"receiving": func(s grpc.ServerStream) error { return s.RecvMsg(dynamicpb.NewMessage(note)) },
		"sending": func(s grpc.ServerStream) error {
			for {
				if err := s.SendMsg(newNote(strings.Repeat("x", 1<<20))); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			entered := make(chan struct{})
			p.exchange = func(s grpc.ServerStream) error {
				if err := s.SendMsg(newNote("open")); err != nil {
					return err
				}
				close(entered)
				return stuck(s)
			}
			r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", Grace: 100 * time.Millisecond}, p)
			if _, err := exchange(t.Context(), r.dial(t, "public")); err != nil {
				t.Fatal(err)
			}
			<-entered
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHTTPRequestsHaveHalfOfTheGrace(t *testing.T) {
	entered := make(chan struct{})
	p := &part{name: "a", events: &diary{}, handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})}
	r := serve(t, rpc.Config{HTTP: "127.0.0.1:0", Grace: 400 * time.Millisecond}, web{p})
	page := make(chan struct{})
	go func() { defer close(page); r.get(t, "http", "/slow") }()
	<-entered
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-page
	if l := r.log.lines("connections are cut"); len(l) != 0 {
		t.Errorf("the request did not end in the grace: %q", l)
	}
}

// drainer is a part that drains.
type drainer struct {
	*part
	drain func(context.Context)
}

func (d drainer) Drain(ctx context.Context) { d.drain(ctx) }

func TestPeersAreServedUntilEverythingHasDrained(t *testing.T) {
	p := &part{name: "a", events: &diary{}}
	say := make(chan struct{})
	p.exchange = func(s grpc.ServerStream) error { // a note at once and whenever the test likes, until the stream is to end
		for err := s.SendMsg(newNote("open")); err == nil; {
			select {
			case <-say:
				if err := s.SendMsg(newNote("a")); err != nil {
					return err
				}
			case <-s.Context().Done():
				return s.Context().Err()
			}
		}
		return nil
	}
	draining, drained := make(chan struct{}), make(chan struct{})
	r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", Keys: keys, Peer: "127.0.0.1:0", Grace: time.Minute}, drainer{p, func(context.Context) { close(draining); <-drained }})
	open := func(face string) grpc.ClientStream {
		s, err := exchange(principal.With(t.Context(), principal.Default()), r.dial(t, face))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	client, peer := open("public"), open("peer")
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	<-draining
	if err := client.RecvMsg(dynamicpb.NewMessage(note)); apierr.Reason(err) != apierr.ReasonDraining {
		t.Errorf("the client's stream ended with %v", err)
	}
	say <- struct{}{}
	if err := peer.RecvMsg(dynamicpb.NewMessage(note)); err != nil {
		t.Errorf("the peer's stream ended while another part drained: %v", err)
	}
	close(drained)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := peer.RecvMsg(dynamicpb.NewMessage(note)); apierr.Reason(err) != apierr.ReasonDraining {
		t.Errorf("the peer's stream ended with %v", err)
	}
}

func TestAProgramThatStopsTellsNoChangeOfReadiness(t *testing.T) {
	stopping, looks := make(chan struct{}), make(chan struct{}, 100)
	a := &part{name: "a", events: &diary{}, ready: func() error {
		looks <- struct{}{}
		<-stopping
		return errors.New("the services refuse calls")
	}}
	streaming := make(chan struct{})
	b := &part{name: "b", events: a.events, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(streaming)
		<-rpc.Draining(r.Context())
		close(stopping)
	})}
	r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", HTTP: "127.0.0.1:0", Grace: time.Minute}, a, silent{web{b}})
	<-looks // the look is under way
	page := make(chan struct{})
	go func() { defer close(page); r.get(t, "http", "/stream") }()
	<-streaming
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-page
	if told := r.log.lines("readiness changed"); len(told) > 0 {
		t.Errorf("the log tells %q", told)
	}
}
