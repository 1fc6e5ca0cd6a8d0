package rest

import (
	"context"
	"net/http"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// keyHeader has a request's idempotency key, in both directions. In the request message it is the field
// request_id.
const keyHeader = "Idempotency-Key"

const requestID protoreflect.Name = "request_id"

type keyKey struct{}

// withKey stores the idempotency key of a request's header in the context.
func withKey(ctx context.Context, h http.Header, rt *route.Route) (context.Context, error) {
	values := h.Values(keyHeader)
	switch {
	case len(values) == 0:
		return ctx, nil
	case len(values) > 1:
		return nil, problem.BadIdempotencyKey("is given more than once")
	case !utf8.ValidString(values[0]): // gRPC cannot transport it
		return nil, problem.BadIdempotencyKey("is not UTF-8; use up to 128 printable ASCII characters without spaces")
	case rt.RPC == converse:
		return nil, problem.BadIdempotencyKey("says nothing about a conversation: give each of its inputs a requestId")
	case !rt.Mutation():
		return ctx, nil
	}
	return context.WithValue(ctx, keyKey{}, values[0]), nil
}

// keyed is a connection that sets the HTTP request's idempotency key in every request message that has one.
// grpc-gateway fills messages only from path, query and body.
type keyed struct{ grpc.ClientConnInterface }

// Invoke implements grpc.ClientConnInterface.
func (c keyed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := setKey(ctx, args); err != nil {
		return err
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c keyed) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	st, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, err
	}
	return keyedStream{st}, nil
}

type keyedStream struct{ grpc.ClientStream }

// SendMsg implements grpc.ClientStream.
func (s keyedStream) SendMsg(m any) error {
	if err := setKey(s.Context(), m); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// setKey sets the key of ctx in a request. It refuses a request with another key.
func setKey(ctx context.Context, request any) error {
	key, ok := ctx.Value(keyKey{}).(string)
	if !ok || key == "" {
		return nil
	}
	m, ok := request.(proto.Message)
	if !ok {
		return nil
	}
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(requestID)
	if f == nil {
		return nil
	}
	if own := r.Get(f).String(); own != "" && own != key {
		return problem.BadIdempotencyKey("and the request's requestId differ; send one of them")
	}
	r.Set(f, protoreflect.ValueOfString(key))
	return nil
}

// outgoingHeader passes only the idempotency key of a service's metadata to the client.
func outgoingHeader(key string) (string, bool) {
	if key == rpc.IdempotencyKey {
		return keyHeader, true
	}
	return "", false
}
