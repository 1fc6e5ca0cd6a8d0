package remote

import (
	"context"

	"google.golang.org/grpc"
)

// conn is a connection whose errors went through Error.
type conn struct{ grpc.ClientConnInterface }

func (c conn) Invoke(ctx context.Context, method string, request, response any, opts ...grpc.CallOption) error {
	return Error(c.ClientConnInterface.Invoke(ctx, method, request, response, opts...))
}

func (c conn) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, d, method, opts...)
	if err != nil {
		return nil, Error(err)
	}
	return stream{s}, nil
}

type stream struct{ grpc.ClientStream }

func (s stream) RecvMsg(m any) error { return Error(s.ClientStream.RecvMsg(m)) }
func (s stream) SendMsg(m any) error { return Error(s.ClientStream.SendMsg(m)) }
