package remote

import (
	"context"
	"errors"
	"io"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

// treePiece is how much of a tree goes into one message.
const treePiece = 256 << 10

// PutTree gives a node a tree, unless the node has it.
func (s *Sandbox) PutTree(ctx context.Context, name, digest string, from io.Reader) error {
	ctx, cancel := context.WithCancel(node.At(ctx, name)) // ends the stream in every case
	defer cancel()
	stream, err := s.workspaces.PutTree(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&sandboxv1.PutTreeRequest{Kind: &sandboxv1.PutTreeRequest_Open{Open: &sandboxv1.PutTreeOpen{Node: name, Digest: digest}}})
	for buffer := make([]byte, treePiece); err == nil; {
		n, readErr := io.ReadFull(from, buffer)
		if n > 0 {
			err = stream.Send(&sandboxv1.PutTreeRequest{Kind: &sandboxv1.PutTreeRequest_Data{Data: buffer[:n]}})
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF of a Send, CloseAndRecv returns the cause
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}
