package rpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// overBoth runs a test over HTTP/2 and within the program, which callers cannot tell apart.
func overBoth(t *testing.T, n *notes, test func(*testing.T, grpc.ClientConnInterface)) {
	t.Helper()
	for name, connect := range connections {
		t.Run(name, func(t *testing.T) {
			_, log := newJournal(t)
			test(t, connect(t, log, n))
		})
	}
}

// connections reach the peer face of a service for the default user.
var connections = map[string]func(testing.TB, *slog.Logger, *notes) grpc.ClientConnInterface{
	"over HTTP/2": servePeer,
	"within the program": func(t testing.TB, log *slog.Logger, n *notes) grpc.ClientConnInterface {
		t.Helper()
		conn, _ := serveLocal(t, log, n, time.Minute)
		return conn
	},
}

// serveLocal serves within the program until stop.
func serveLocal(t testing.TB, log *slog.Logger, n *notes, grace time.Duration) (conn grpc.ClientConnInterface, stop func()) {
	t.Helper()
	local := rpc.NewLocal(keys)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	p := &part{notes: *n, name: "a", events: &diary{}}
	go func() {
		done <- rpc.Serve(ctx, rpc.Config{Ops: "127.0.0.1:0", Grace: grace}, telemetry.Discard(log), local, p)
	}()
	ended := false
	stop = func() {
		if end(); ended {
			return
		}
		ended = true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return rpc.As(local.Conn, principal.Default()), stop
}

func TestCallerAndHandlerShareNoMessage(t *testing.T) {
	var seen *dynamicpb.Message
	n := &notes{
		take: func(_ context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
			seen = in
			in.Set(note.Fields().ByName("text"), valueOf("changed"))
			return in, nil
		},
		exchange: func(s grpc.ServerStream) error {
			m := newNote("1", "a")
			for range 2 {
				if err := s.SendMsg(m); err != nil {
					return err
				}
				m.Mutable(note.Fields().ByName("items")).List().Truncate(0)
				m.Set(note.Fields().ByName("text"), valueOf("2"))
			}
			return nil
		},
	}
	overBoth(t, n, func(t *testing.T, cc grpc.ClientConnInterface) {
		in := newNote("mine", "a")
		out, err := take(t.Context(), cc, in)
		if err != nil {
			t.Fatal(err)
		}
		seen.Set(note.Fields().ByName("text"), valueOf("changed later"))
		if get(in, "text") != "mine" || get(in, "request_id") != "" || get(out, "text") != "changed" {
			t.Errorf("the request is %v, the answer %v", in, out)
		}
		s, err := exchange(t.Context(), cc)
		if err != nil {
			t.Fatal(err)
		}
		first, second := dynamicpb.NewMessage(note), dynamicpb.NewMessage(note)
		if err := errors.Join(s.RecvMsg(first), s.RecvMsg(second)); err != nil {
			t.Fatal(err)
		}
		if items := first.Get(note.Fields().ByName("items")).List().Len(); get(first, "text") != "1" || items != 1 || get(second, "text") != "2" {
			t.Errorf("received %v and %v", first, second)
		}
		if err := s.RecvMsg(first); !errors.Is(err, io.EOF) {
			t.Errorf("the end is %v", err)
		}
	})
}

func TestFramesPass(t *testing.T) {
	overBoth(t, &notes{}, func(t *testing.T, cc grpc.ClientConnInterface) {
		text, err := (rpc.FrameCodec{}).Marshal(newNote("hi", "a"))
		if err != nil {
			t.Fatal(err)
		}
		var answer rpc.Frame
		if err := cc.Invoke(t.Context(), unaryMethod, rpc.NewFrame(text.Materialize()), &answer, grpc.ForceCodecV2(rpc.FrameCodec{})); err != nil {
			t.Fatal(err)
		}
		s, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod, grpc.ForceCodecV2(rpc.FrameCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		var echo rpc.Frame
		if err := errors.Join(s.SendMsg(&answer), s.RecvMsg(&echo)); err != nil {
			t.Fatal(err)
		}
		got := dynamicpb.NewMessage(note)
		if err := (rpc.FrameCodec{}).Unmarshal(text[:0], got); err != nil {
			t.Fatal(err)
		}
		back := rpc.NewFrame(echo.Bytes())
		data, err := (rpc.FrameCodec{}).Marshal(back)
		if err == nil {
			err = (rpc.FrameCodec{}).Unmarshal(data, got)
		}
		if err != nil || get(got, "text") != "hi" {
			t.Errorf("%v, %v", got, err)
		}
		closeStream(t, s)
	})
}

func TestAnEmptyHeaderIsSent(t *testing.T) {
	n := &notes{exchange: func(s grpc.ServerStream) error {
		if err := s.SendHeader(metadata.MD{}); err != nil {
			return err
		}
		return s.RecvMsg(dynamicpb.NewMessage(note))
	}}
	overBoth(t, n, func(t *testing.T, cc grpc.ClientConnInterface) {
		s, err := exchange(t.Context(), cc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Header(); err != nil { // before the handler has got anything
			t.Error(err)
		}
		_ = s.SendMsg(newNote("x"))
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

func TestACallerThatLeavesEndsItsHandler(t *testing.T) {
	entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := func(ctx context.Context) error {
		_, limited := ctx.Deadline()
		entered <- struct{}{}
		<-ctx.Done()
		left <- struct{}{}
		if !limited {
			return errors.New("no deadline")
		}
		return ctx.Err()
	}
	n := &notes{
		take:     func(ctx context.Context, _ *dynamicpb.Message) (*dynamicpb.Message, error) { return nil, wait(ctx) },
		exchange: func(s grpc.ServerStream) error { return wait(s.Context()) },
	}
	overBoth(t, n, func(t *testing.T, cc grpc.ClientConnInterface) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-entered; cancel() }()
		if _, err := take(ctx, cc, newNote("x")); apierr.Code(err) != codes.Canceled {
			t.Errorf("a cancelled call: %v", err)
		}
		<-left
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		s, err := exchange(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); apierr.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a stream beyond its deadline: %v", err)
		}
		<-entered
		<-left
	})
}

// TestARequestOfARefusedCallIsSent refuses calls before their request comes. The answer says why, not the sending.
func TestARequestOfARefusedCallIsSent(t *testing.T) {
	n := &notes{exchange: func(grpc.ServerStream) error {
		return apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonTransport, "no")
	}}
	overBoth(t, n, func(t *testing.T, cc grpc.ClientConnInterface) {
		for range 20 { // Go chooses at random between a request that can be sent and a call that has ended
			s, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, streamMethod)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Header() // comes with the end of the handler
			if err := s.SendMsg(newNote("x")); err != nil {
				t.Fatalf("the request: %v", err)
			}
			if err := s.RecvMsg(dynamicpb.NewMessage(note)); apierr.Reason(err) != apierr.ReasonTransport {
				t.Fatalf("the answer: %v", err)
			}
		}
	})
}

func TestWhatIsSentToACallerThatHasLeftIsNoFault(t *testing.T) {
	failed := make(chan error, 1)
	n := &notes{exchange: func(s grpc.ServerStream) error {
		<-s.Context().Done()
		err := s.SendMsg(newNote("x"))
		failed <- err
		return err
	}}
	overBoth(t, n, func(t *testing.T, cc grpc.ClientConnInterface) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := exchange(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); apierr.Code(err) != codes.Canceled {
			t.Errorf("the caller: %v", err)
		}
		if err := <-failed; apierr.Code(err) != codes.Canceled {
			t.Errorf("the handler: %v", err)
		}
	})
}

func TestCallsWithinTheProgramEndWithIt(t *testing.T) {
	entered, release := make(chan struct{}, 3), make(chan struct{})
	n := &notes{
		take: func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
			entered <- struct{}{}
			select {
			case <-release:
				return in, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		exchange: func(s grpc.ServerStream) error { entered <- struct{}{}; return s.RecvMsg(dynamicpb.NewMessage(note)) },
	}
	_, log := newJournal(t)
	ask := func(conn grpc.ClientConnInterface) chan error {
		answer := make(chan error, 1)
		go func() { _, err := take(t.Context(), conn, newNote("x")); answer <- err }()
		<-entered
		return answer
	}
	t.Run("a unary call has the grace", func(t *testing.T) {
		conn, stop := serveLocal(t, log, n, time.Minute)
		answer := ask(conn)
		go close(release)
		stop()
		if err := <-answer; err != nil {
			t.Error(err)
		}
		if _, err := take(t.Context(), conn, newNote("x")); apierr.Code(err) != codes.Unavailable {
			t.Errorf("a call after the end: %v", err)
		}
	})
	release = make(chan struct{})
	t.Run("and is cut after it, like a stream that is stuck", func(t *testing.T) {
		conn, stop := serveLocal(t, log, n, 50*time.Millisecond)
		s, err := exchange(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		<-entered
		answer := ask(conn)
		stop()
		if err := <-answer; apierr.Code(err) != codes.Unavailable {
			t.Errorf("the call: %v", err)
		}
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); apierr.Code(err) != codes.Unavailable {
			t.Errorf("the stream: %v", err)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	n := &notes{exchange: func(s grpc.ServerStream) error {
		m := newNote("text", "a", "b")
		for {
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}}
	for name, connect := range connections {
		cc := connect(b, slog.New(slog.DiscardHandler), n)
		b.Run("unary "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := take(b.Context(), cc, newNote("text", "a", "b")); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("a message of a stream "+name, func(b *testing.B) {
			b.ReportAllocs()
			s, err := exchange(b.Context(), cc)
			if err != nil {
				b.Fatal(err)
			}
			in := dynamicpb.NewMessage(note)
			for b.Loop() {
				if err := s.RecvMsg(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
