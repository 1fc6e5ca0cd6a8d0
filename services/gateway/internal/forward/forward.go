// Package forward passes RPCs on to the services that implement them. It neither parses nor changes messages. Nothing
// of a client's metadata reaches a service but the trace; the principal of the context goes along as everywhere.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Method is an RPC and the connection to its service.
type Method struct {
	// Name is as in gRPC: /package.Service/Method.
	Name                         string
	ClientStreams, ServerStreams bool

	conn grpc.ClientConnInterface
}

// Table has the RPCs of the public services.
type Table struct {
	services []grpc.ServiceDesc
	methods  map[string]*Method
}

// New returns the table of services. The connection of a service is that of its package.
func New(services []protoreflect.ServiceDescriptor, conns map[protoreflect.FullName]grpc.ClientConnInterface, streams *limit.Streams) (*Table, error) {
	t := &Table{methods: map[string]*Method{}}
	for _, s := range services {
		conn := conns[s.ParentFile().Package()]
		if conn == nil {
			return nil, fmt.Errorf("%s: there is no connection to the services of %s", s.FullName(), s.ParentFile().Package())
		}
		desc := grpc.ServiceDesc{ServiceName: string(s.FullName()), HandlerType: (*any)(nil), Metadata: s.ParentFile().Path()}
		for i := range s.Methods().Len() {
			d := s.Methods().Get(i)
			m := &Method{
				Name:          fmt.Sprintf("/%s/%s", s.FullName(), d.Name()),
				ClientStreams: d.IsStreamingClient(), ServerStreams: d.IsStreamingServer(), conn: conn,
			}
			t.methods[m.Name] = m
			if m.ClientStreams || m.ServerStreams {
				desc.Streams = append(desc.Streams, grpc.StreamDesc{
					StreamName: string(d.Name()), Handler: m.stream(streams), ClientStreams: m.ClientStreams, ServerStreams: m.ServerStreams,
				})
			} else {
				desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: string(d.Name()), Handler: m.unary})
			}
		}
		t.services = append(t.services, desc)
	}
	return t, nil
}

// Find returns the RPC of a name, or nil.
func (t *Table) Find(name string) *Method { return t.methods[name] }

// Register registers all services.
func (t *Table) Register(r grpc.ServiceRegistrar) {
	for i := range t.services {
		r.RegisterService(&t.services[i], struct{}{})
	}
}

// raw lets a call take frames.
var raw = grpc.ForceCodecV2(rpc.FrameCodec{})

// Invoke makes a unary call with a frame. It returns the answer and the headers for the client.
func (m *Method) Invoke(ctx context.Context, request *rpc.Frame) (*rpc.Frame, metadata.MD, error) {
	answer, header := &rpc.Frame{}, metadata.MD{}
	err := m.conn.Invoke(ctx, m.Name, request, answer, raw, grpc.Header(&header))
	if err != nil {
		return nil, visible(header), problem.Forward(err)
	}
	return answer, visible(header), nil
}

// Open opens a stream of frames. The end of ctx ends it.
func (m *Method) Open(ctx context.Context) (grpc.ClientStream, error) {
	st, err := m.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.ClientStreams, ServerStreams: m.ServerStreams}, m.Name, raw)
	if err != nil {
		return nil, problem.Forward(err)
	}
	return st, nil
}

// visible returns the headers that clients see.
func visible(md metadata.MD) metadata.MD {
	if key := md.Get(rpc.IdempotencyKey); len(key) > 0 {
		return metadata.Pairs(rpc.IdempotencyKey, key[0])
	}
	return nil
}

// Header waits for a stream's headers and returns those for the client.
func Header(st grpc.ClientStream) metadata.MD {
	md, err := st.Header()
	if err != nil { // the stream's messages say why
		return nil
	}
	return visible(md)
}

// unary is the handler of a unary RPC.
func (m *Method) unary(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc-go's order
	request := &rpc.Frame{}
	if err := dec(request); err != nil {
		return nil, err
	}
	call := func(ctx context.Context, _ any) (any, error) {
		answer, header, err := m.Invoke(ctx, request)
		if header != nil {
			_ = grpc.SetHeader(ctx, header) // fails only for a client that has gone
		}
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
	if around == nil {
		return call(ctx, request)
	}
	return around(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: m.Name}, call)
}

// stream returns the handler of a streaming RPC.
func (m *Method) stream(streams *limit.Streams) grpc.StreamHandler {
	return func(_ any, client grpc.ServerStream) error {
		release, err := streams.Acquire(limit.Caller(client.Context()))
		if err != nil {
			return err
		}
		defer release()
		// The end of the context ends the goroutine below, which must not use the client's stream any more when
		// this handler has returned; grpc-go ends its receiving then.
		ctx, cancel := context.WithCancel(client.Context())
		defer cancel()
		service, err := m.Open(ctx)
		if err != nil {
			return err
		}
		if !m.ClientStreams {
			if err := one(client, service); err != nil {
				return err
			}
			return down(client, service)
		}
		go func() {
			if err := up(client, service); err != nil {
				cancel() // the client has gone, or sent what is no message
			}
		}()
		return down(client, service)
	}
}

// one passes the client's only message on.
func one(client grpc.ServerStream, service grpc.ClientStream) error {
	f := &rpc.Frame{}
	if err := client.RecvMsg(f); err != nil {
		return err
	}
	if err := service.SendMsg(f); err != nil {
		return nil //nolint:nilerr // the answers say why
	}
	return service.CloseSend()
}

// up passes the client's messages on until it has sent all.
func up(client grpc.ServerStream, service grpc.ClientStream) error {
	for {
		f := &rpc.Frame{}
		err := client.RecvMsg(f)
		if errors.Is(err, io.EOF) {
			return service.CloseSend()
		}
		if err != nil {
			return err
		}
		if service.SendMsg(f) != nil {
			return nil //nolint:nilerr // the answers say why
		}
	}
}

// down passes the service's headers, messages and status on.
func down(client grpc.ServerStream, service grpc.ClientStream) error {
	if md, err := service.Header(); err == nil {
		if err := client.SendHeader(visible(md)); err != nil {
			return err
		}
	}
	for {
		f := &rpc.Frame{}
		err := service.RecvMsg(f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return problem.Forward(err)
		}
		if err := client.SendMsg(f); err != nil {
			return err
		}
	}
}
