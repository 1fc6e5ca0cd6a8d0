package e2e

import (
	"errors"
	"io"
	"net"
	"path"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// gate is a proxy in front of a service's peer face. It holds back the calls of one
// method until it is opened, and knows what it let through and how that was answered.
type gate struct {
	addr    string
	held    string        // the method, such as `CallTool`
	reached chan struct{} // gets a token for each call that is held back
	open    chan struct{} // to be closed

	backend *grpc.ClientConn
	mu      sync.Mutex
	answers []answered
}

// answered is a call that was let through and has ended.
type answered struct{ method, reason string }

// startGate runs a proxy until the test ends.
func startGate(t *testing.T, to, held string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: listener.Addr().String(), held: held, reached: make(chan struct{}, 100), open: make(chan struct{})}
	if g.backend, err = grpc.NewClient(to, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(untouched{}))); err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(g.pass), grpc.ForceServerCodecV2(untouched{}), grpc.WaitForHandlers(true))
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		_ = g.backend.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

// untouched is a codec that leaves messages as they came.
type untouched struct{}

func (untouched) Name() string { return "proto" }
func (untouched) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (untouched) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = untouched{}

// pass passes on one call of one request, such as all are but Exec.
func (g *gate) pass(_ any, in grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(in)
	method := path.Base(full)
	var request []byte
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	if method == g.held {
		g.reached <- struct{}{}
		select {
		case <-g.open:
		case <-in.Context().Done():
			return status.FromContextError(in.Context().Err()).Err()
		}
	}
	err := g.forward(in, full, request)
	g.mu.Lock()
	defer g.mu.Unlock()
	reason := apierr.Reason(err)
	if reason == "" && err != nil {
		reason = status.Code(err).String()
	}
	g.answers = append(g.answers, answered{method, reason})
	return err
}

// forward passes the request on, and the answers back.
func (g *gate) forward(in grpc.ServerStream, method string, request []byte) error {
	md, _ := metadata.FromIncomingContext(in.Context())
	out, err := g.backend.NewStream(metadata.NewOutgoingContext(in.Context(), md), &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := out.SendMsg(&request); err != nil {
		return err
	}
	if err := out.CloseSend(); err != nil {
		return err
	}
	if header, err := out.Header(); err == nil {
		_ = in.SendHeader(header)
	}
	for {
		var answer []byte
		if err := out.RecvMsg(&answer); err != nil {
			in.SetTrailer(out.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := in.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// answered tells whether a call of the method has ended so. An empty reason is success.
func (g *gate) answered(method, reason string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.answers, answered{method, reason})
}
