package wire

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// All returns the entries of all pages of a list, in order. An error is the last that it returns.
func All[Q proto.Message, P interface{ GetNextPageToken() string }, E any](
	ctx context.Context, list func(context.Context, Q, ...grpc.CallOption) (P, error), req Q, entries func(P) []E,
) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		m := req.ProtoReflect()
		token := m.Descriptor().Fields().ByName("page_token")
		for {
			page, err := list(ctx, req)
			if err != nil {
				yield(*new(E), err)
				return
			}
			for _, e := range entries(page) {
				if !yield(e, nil) {
					return
				}
			}
			if page.GetNextPageToken() == "" {
				return
			}
			m.Set(token, protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}
