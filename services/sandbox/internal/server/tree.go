package server

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// PutTree gives the node a tree.
func (s *workspaceServer) PutTree(stream grpc.ClientStreamingServer[sandboxv1.PutTreeRequest, sandboxv1.PutTreeResponse]) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	open := first.GetOpen()
	switch {
	case open == nil:
		return invalid("kind", "the first request must be `open`")
	case open.GetNode() != "" && open.GetNode() != s.info.Node:
		return status(fmt.Errorf("%w: it is for %q, and this is %q", box.ErrWrongNode, open.GetNode(), s.info.Node))
	case s.info.Trees == nil:
		return status(box.ErrTrees)
	}
	if err := s.node.Ready(); err != nil && !s.info.Trees.Has(open.GetDigest()) {
		return status(err)
	}
	created, err := s.info.Trees.Put(stream.Context(), open.GetDigest(), &packedTree{stream: stream})
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(&sandboxv1.PutTreeResponse{Created: created})
}

// packedTree reads the archive of a stream.
type packedTree struct {
	stream    grpc.ClientStreamingServer[sandboxv1.PutTreeRequest, sandboxv1.PutTreeResponse]
	remaining []byte
}

func (r *packedTree) Read(b []byte) (int, error) {
	for len(r.remaining) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		if m.GetOpen() != nil {
			return 0, invalid("kind", "only the first request may be `open`")
		}
		r.remaining = m.GetData()
	}
	n := copy(b, r.remaining)
	r.remaining = r.remaining[n:]
	return n, nil
}
