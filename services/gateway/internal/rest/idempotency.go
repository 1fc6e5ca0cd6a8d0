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

// keyHeader carries a request's idempotency key, in both directions. In the request message it is the field request_id.
const keyHeader = "Idempotency-Key"

const requestID protoreflect.Name = "request_id"

type keyKey struct{}

// withKey notes the idempotency key of a request's header.
func withKey(ctx context.Context, h http.Header, rt *route.Route) (context.Context, error) {
	values := h.Values(keyHeader)
	switch {
	case len(values) == 0:
		return ctx, nil
	case len(values) > 1:
		return nil, problem.BadIdempotencyKey("is given more than once")
	case !utf8.ValidString(values[0]): // gRPC could not carry it
		return nil, problem.BadIdempotencyKey("is not UTF-8; use up to 128 printable ASCII characters without spaces")
	case rt.RPC == converse:
		return nil, problem.BadIdempotencyKey("says nothing about a conversation: give each of its inputs a requestId")
	case !rt.Mutation():
		return ctx, nil
	}
	return context.WithValue(ctx, keyKey{}, values[0]), nil
}

// keyed is a connection that puts the idempotency key of the HTTP request into every request message that takes one.
// grpc-gateway fills messages from path, query and body only.
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

// setKey puts the key of ctx into a request. A request that brings another one is refused.
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

// outgoingHeader lets the idempotency key through to the client, and nothing else of a service's metadata.
func outgoingHeader(key string) (string, bool) {
	if key == rpc.IdempotencyKey {
		return keyHeader, true
	}
	return "", false
}
