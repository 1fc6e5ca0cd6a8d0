package remote

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

// pieceBytes is the size of one message of an archive.
const pieceBytes = 256 << 10

// ExportWorkspace returns the workspace as an archive, once its first bytes are there. It
// reads until ctx ends.
func (s *Sandbox) ExportWorkspace(ctx context.Context, p Place) (io.Reader, error) {
	return s.ExportFiles(ctx, p, &sandboxv1.ExportWorkspaceRequest{})
}

// ExportFiles returns a directory as an archive, as ExportWorkspace does.
func (s *Sandbox) ExportFiles(ctx context.Context, p Place, r *sandboxv1.ExportWorkspaceRequest) (io.Reader, error) {
	r.Session, r.WorkspaceGeneration = p.Session, p.Generation
	stream, err := s.workspaces.ExportWorkspace(node.At(ctx, p.Node), r)
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &incoming{stream, first.GetData(), err}, nil
}

// ImportWorkspace makes the workspace from an archive, which write writes. It reports whether
// the workspace was made now.
func (s *Sandbox) ImportWorkspace(ctx context.Context, call *commonv1.CallRef, write func(io.Writer) error) (made bool, err error) {
	ctx, cancel := context.WithCancel(to(ctx, call)) // ends the stream in every case
	defer cancel()
	stream, err := s.workspaces.ImportWorkspace(ctx)
	if err != nil {
		return false, err
	}
	err = stream.Send(&sandboxv1.ImportWorkspaceRequest{Kind: &sandboxv1.ImportWorkspaceRequest_Open{Open: &sandboxv1.ImportWorkspaceOpen{Call: call}}})
	if err == nil {
		err = write(outgoing{stream})
	}
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF of a Send, CloseAndRecv returns the cause
		return false, err
	}
	resp, err := stream.CloseAndRecv()
	return resp.GetCreated(), err
}

// incoming reads an archive from a stream.
type incoming struct {
	stream    grpc.ServerStreamingClient[sandboxv1.ExportWorkspaceResponse]
	remaining []byte
	err       error
}

func (r *incoming) Read(b []byte) (int, error) {
	for len(r.remaining) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var m *sandboxv1.ExportWorkspaceResponse
		m, r.err = r.stream.Recv()
		r.remaining = m.GetData()
	}
	n := copy(b, r.remaining)
	r.remaining = r.remaining[n:]
	return n, nil
}

// outgoing writes an archive to a stream.
type outgoing struct {
	stream grpc.ClientStreamingClient[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]
}

func (w outgoing) Write(b []byte) (int, error) {
	for part := b; len(part) > 0; {
		n := min(len(part), pieceBytes)
		if err := w.stream.Send(&sandboxv1.ImportWorkspaceRequest{Kind: &sandboxv1.ImportWorkspaceRequest_Data{Data: part[:n]}}); err != nil {
			return 0, err
		}
		part = part[n:]
	}
	return len(b), nil
}
