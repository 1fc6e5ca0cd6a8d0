package server

import (
	"bufio"
	"errors"
	"io"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// archivePiece is how much of an archive goes into one message.
const archivePiece = 256 << 10

// ExportWorkspace streams a workspace's files.
func (s *workspaceServer) ExportWorkspace(r *sandboxv1.ExportWorkspaceRequest, stream grpc.ServerStreamingServer[sandboxv1.ExportWorkspaceResponse]) error {
	t, done, err := (&fileServer{Server: s.Server}).view(stream.Context(), r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer done()
	out := bufio.NewWriterSize(sender(func(b []byte) error {
		return stream.Send(&sandboxv1.ExportWorkspaceResponse{Data: b})
	}), archivePiece)
	if err := t.Pack(stream.Context(), out); err != nil {
		return status(err)
	}
	return out.Flush()
}

// sender is a Writer that sends. The message is marshaled before it returns, so
// the bytes need not be copied.
type sender func([]byte) error

func (s sender) Write(b []byte) (int, error) {
	if err := s(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// ImportWorkspace makes a workspace from an archive.
func (s *workspaceServer) ImportWorkspace(stream grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return invalid("kind", "the stream ended before open")
		}
		return err
	}
	open := first.GetOpen()
	if open == nil {
		return invalid("kind", "the first request has to be open")
	}
	c, err := call(stream.Context(), open.GetCall())
	if err != nil {
		return status(err)
	}
	in := &receiver{stream: stream}
	got, err := s.node.Import(c, open.GetWorkspaceGeneration(), func(w *box.Workspace) error { return unpack(w, in) })
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(&sandboxv1.ImportWorkspaceResponse{Created: got.Created})
}

// unpack puts an archive into a new workspace, in which nothing runs yet. The
// whole stream is read: what follows the archive's end is not part of it.
func unpack(w *box.Workspace, in *receiver) error {
	t, err := openTree(w)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	err = t.Unpack(in.stream.Context(), in, func(bytes int64) error {
		if err := w.Reserve(bytes, 1); err != nil {
			return err
		}
		w.Changed(bytes, 1)
		return nil
	})
	if err != nil {
		return err
	}
	w.Recount() // directories that no entry names were made too
	_, err = io.Copy(io.Discard, in)
	return err
}

// receiver reads the data of a stream.
type receiver struct {
	stream grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]
	rest   []byte
}

func (r *receiver) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		if m.GetOpen() != nil {
			return 0, invalid("kind", "open is the first request, and only the first")
		}
		r.rest = m.GetData()
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
