package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRequestID(t *testing.T) {
	overBoth(t, &notes{}, testRequestID)
}

func testRequestID(t *testing.T, cc grpc.ClientConnInterface) {
	t.Run("an empty one is made and answered", func(t *testing.T) {
		var header metadata.MD
		out, err := take(t.Context(), cc, newNote("hi"), grpc.Header(&header))
		if err != nil {
			t.Fatal(err)
		}
		got := get(out, "request_id")
		if len(got) != len(id.New()) {
			t.Errorf("the handler saw request_id %q", got)
		}
		if diff := cmp.Diff([]string{got}, header.Get(rpc.IdempotencyKey)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a given one is kept and answered", func(t *testing.T) {
		in := newNote("hi")
		in.Set(note.Fields().ByName("request_id"), valueOf("mine"))
		var header metadata.MD
		out, err := take(t.Context(), cc, in, grpc.Header(&header))
		if err != nil {
			t.Fatal(err)
		}
		if got := get(out, "request_id"); got != "mine" || header.Get(rpc.IdempotencyKey)[0] != "mine" {
			t.Errorf("request_id %q, header %v", got, header)
		}
	})
	t.Run("only the first message of a stream gets one", func(t *testing.T) {
		s, err := exchange(t.Context(), cc)
		if err != nil {
			t.Fatal(err)
		}
		first, second := roundTrip(t, s, newNote("1")), roundTrip(t, s, newNote("2"))
		header, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		if key := get(first, "request_id"); len(key) != len(id.New()) || header.Get(rpc.IdempotencyKey)[0] != key {
			t.Errorf("first: request_id %q, header %v", key, header)
		}
		if key := get(second, "request_id"); key != "" {
			t.Errorf("second: request_id %q", key)
		}
		closeStream(t, s)
	})
	t.Run("one that no header can carry is still validated", func(t *testing.T) {
		in := newNote("hi")
		in.Set(note.Fields().ByName("request_id"), valueOf(strings.Repeat("ü\n", 70)))
		_, err := take(t.Context(), cc, in)
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v, want INVALID_ARGUMENT", err)
		}
	})
}

func TestValidation(t *testing.T) { overBoth(t, &notes{}, testValidation) }

func testValidation(t *testing.T, cc grpc.ClientConnInterface) {
	all := []string{"text", "items[1].key"}
	check := func(t *testing.T, err error, want ...string) {
		t.Helper()
		if apierr.Code(err) != codes.InvalidArgument || apierr.Reason(err) != apierr.ReasonInvalidRequest {
			t.Fatalf("got %v", err)
		}
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		var got []string
		for _, v := range bad.GetFieldViolations() {
			got = append(got, v.GetField())
			if v.GetDescription() == "" || !strings.Contains(apierr.Message(err), v.GetField()+": "+v.GetDescription()) {
				t.Errorf("the message %q does not tell about %v", apierr.Message(err), v)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("of a unary request", func(t *testing.T) {
		_, err := take(t.Context(), cc, newNote("", "good", "BAD"))
		check(t, err, all...)
	})
	t.Run("by a rule of a whole message, which names a field by its id", func(t *testing.T) {
		_, err := take(t.Context(), cc, newNote("hi", "good", "reserved"))
		check(t, err, "items[1].key")
	})
	t.Run("of the first ten violations", func(t *testing.T) {
		keys := slices.Repeat([]string{"BAD"}, 10_000)
		_, err := take(t.Context(), cc, newNote("", keys...))
		check(t, err, "text", "items[0].key", "items[1].key", "items[2].key", "items[3].key", "items[4].key", "items[5].key", "items[6].key", "items[7].key", "items[8].key")
		if msg := apierr.Message(err); !strings.HasSuffix(msg, "; and 9991 more") {
			t.Error(msg)
		}
	})
	t.Run("of a later message of a stream", func(t *testing.T) {
		s, err := exchange(t.Context(), cc)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, s, newNote("fine", "good"))
		if err := s.SendMsg(newNote("", "good", "BAD")); err != nil {
			t.Fatal(err)
		}
		check(t, s.RecvMsg(dynamicpb.NewMessage(note)), all...)
	})
}

func TestErrorsAndPanics(t *testing.T) {
	ours := apierr.New(codes.NotFound, "test.fairlead.dev", "NOTE_NOT_FOUND", "there is no such note")
	for name, c := range map[string]struct {
		do      func(context.Context) error
		code    codes.Code
		reason  string
		hidden  string
		logged  []string
		message string
	}{
		"an error of ours is sent as it is": {
			do: func(context.Context) error { return ours }, code: codes.NotFound, reason: "NOTE_NOT_FOUND", message: "there is no such note",
			logged: []string{"msg=rpc", "code=NotFound", "reason=NOTE_NOT_FOUND"},
		},
		"the words around an error of ours are not sent": {
			do:   func(context.Context) error { return fmt.Errorf("select * from secrets: %w", ours) },
			code: codes.NotFound, reason: "NOTE_NOT_FOUND", message: "there is no such note", hidden: "secrets",
		},
		"another error is INTERNAL and logged": {
			do:   func(context.Context) error { return errors.New("pq: password of bob is wrong") },
			code: codes.Internal, reason: apierr.ReasonInternal, hidden: "bob", logged: []string{"level=ERROR", "password of bob"},
		},
		"a peer's status that is not forwarded is INTERNAL": {
			do:   func(context.Context) error { return status.Error(codes.NotFound, "no such row") },
			code: codes.Internal, reason: apierr.ReasonInternal, hidden: "row",
		},
		"a panic is INTERNAL and logged with its stack": {
			do:   func(context.Context) error { panic("index of bob out of range") },
			code: codes.Internal, reason: apierr.ReasonInternal, hidden: "bob", logged: []string{"index of bob", "chain_test.go"},
		},
		"an RPC that panics has its line in the log": {
			do:   func(context.Context) error { panic("!") },
			code: codes.Internal, reason: apierr.ReasonInternal, logged: []string{"msg=rpc", "code=Internal", "face=peer", "tenant=default"},
		},
		"a cancelled context is CANCELLED": {
			do: func(context.Context) error { return fmt.Errorf("query: %w", context.Canceled) }, code: codes.Canceled, hidden: "query",
		},
		"a deadline is DEADLINE_EXCEEDED": {
			do: func(context.Context) error { return context.DeadlineExceeded }, code: codes.DeadlineExceeded,
		},
	} {
		for kind, call := range calls(c.do) {
			t.Run(name+", "+kind, func(t *testing.T) {
				j, log := newJournal(t)
				err := call(t, log)
				if apierr.Code(err) != c.code || apierr.Reason(err) != c.reason {
					t.Errorf("got %v with reason %q, want %v with %q", err, apierr.Reason(err), c.code, c.reason)
				}
				if c.message != "" && apierr.Message(err) != c.message {
					t.Errorf("message %q, want %q", apierr.Message(err), c.message)
				}
				if s, _ := status.FromError(err); c.hidden != "" && strings.Contains(s.Proto().String(), c.hidden) {
					t.Errorf("%v shows %q", s.Proto(), c.hidden)
				}
				if c.logged != nil && len(j.lines(c.logged...)) != 1 {
					t.Errorf("%d lines of the log have all of %q", len(j.lines(c.logged...)), c.logged)
				}
				request, ok := apierr.Detail[*errdetails.RequestInfo](err)
				if ok != (c.code == codes.Internal) || len(j.lines("level=ERROR", "request_id="+request.GetRequestId())) != 1 && ok {
					t.Errorf("RequestInfo %v does not lead to the log", request)
				}
			})
		}
	}
}

// calls returns a unary and a streaming call of a service that does do.
func calls(do func(context.Context) error) map[string]func(t *testing.T, log *slog.Logger) error {
	n := &notes{
		take:     func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) { return in, do(ctx) },
		exchange: func(s grpc.ServerStream) error { return do(s.Context()) },
	}
	return map[string]func(t *testing.T, log *slog.Logger) error{
		"unary": func(t *testing.T, log *slog.Logger) error {
			_, err := take(t.Context(), servePeer(t, log, n), newNote("x"))
			return err
		},
		"stream": func(t *testing.T, log *slog.Logger) error {
			s, err := exchange(t.Context(), servePeer(t, log, n))
			if err != nil {
				return err
			}
			return s.RecvMsg(dynamicpb.NewMessage(note))
		},
	}
}

// servePeer is rpctest.Dial with a log of the test's. A call's line is in it before the call returns: the interceptors
// write it before the status is sent.
func servePeer(t testing.TB, log *slog.Logger, n *notes) grpc.ClientConnInterface {
	t.Helper()
	pipe, server := rpc.NewPipe(keys, rpc.WithFallback(principal.Default())), rpc.NewPeerServer(log, keys)
	n.RegisterPublic(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(pipe.Listener()) }()
	t.Cleanup(func() {
		_ = pipe.Conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return pipe.Conn
}

func TestTooLargeAndUnknown(t *testing.T) { overBoth(t, &notes{}, testTooLargeAndUnknown) }

func testTooLargeAndUnknown(t *testing.T, cc grpc.ClientConnInterface) {
	big := newNote(strings.Repeat("x", rpc.MaxMessage))
	t.Run("a unary request beyond the limit", func(t *testing.T) {
		if _, err := take(t.Context(), cc, big, grpc.MaxCallSendMsgSize(2*rpc.MaxMessage)); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", status.Code(err))
		}
	})
	t.Run("a message of a stream beyond the limit", func(t *testing.T) {
		s, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod, grpc.MaxCallSendMsgSize(2*rpc.MaxMessage))
		if err != nil {
			t.Fatal(err)
		}
		_ = s.SendMsg(big) // What is wrong with it is the answer.
		if err := s.RecvMsg(dynamicpb.NewMessage(note)); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a message just within the limit", func(t *testing.T) {
		if _, err := take(t.Context(), cc, newNote(strings.Repeat("x", rpc.MaxMessage-200))); err != nil {
			t.Error(status.Code(err))
		}
	})
	t.Run("an RPC that nobody serves", func(t *testing.T) {
		err := cc.Invoke(t.Context(), "/fairlead.test.v1.Notes/Forget", newNote("x"), dynamicpb.NewMessage(note))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v", err)
		}
	})
}

func TestPeerPrincipal(t *testing.T) {
	var got principal.Principal
	n := &notes{take: func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		got, _ = principal.From(ctx)
		return in, nil
	}}
	cc := rpctest.Dial(t, n.RegisterPublic)
	for name, want := range map[string]principal.Principal{
		"a service when the context has none": principal.Service("default", "default"),
		"the context's":                       {Tenant: "acme", User: "Zoë", Role: principal.RoleUser, Scopes: []string{"a", "b"}, Credential: "keys/k"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if want.Tenant != "default" {
				ctx = principal.With(ctx, want)
			}
			if _, err := take(ctx, cc, newNote("x")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHealthIsNotLogged(t *testing.T) {
	j, log := newJournal(t)
	cc := servePeer(t, log, &notes{})
	_, _ = healthv1.NewHealthClient(cc).Check(t.Context(), &healthv1.HealthCheckRequest{}) // nobody serves it here
	if l := j.lines("grpc.health"); len(l) != 0 {
		t.Errorf("logged: %q", l)
	}
	if _, err := take(t.Context(), cc, newNote("x")); err != nil {
		t.Fatal(err)
	}
	if l := j.lines("msg=rpc", "method="+unaryMethod, "code=OK", "duration_ms=", "face=peer", "tenant=default"); len(l) != 1 {
		t.Errorf("%d lines for one RPC", len(l))
	}
}

func roundTrip(t *testing.T, s grpc.ClientStream, in *dynamicpb.Message) *dynamicpb.Message {
	t.Helper()
	if err := s.SendMsg(in); err != nil {
		t.Fatal(err)
	}
	out := dynamicpb.NewMessage(note)
	if err := s.RecvMsg(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func closeStream(t *testing.T, s grpc.ClientStream) {
	t.Helper()
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(dynamicpb.NewMessage(note)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the stream: %v", err)
	}
}
