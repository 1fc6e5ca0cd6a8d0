package remote

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

// Pieces returns the next bytes of an upload, and io.EOF at its end.
type Pieces func() ([]byte, error)

// Epoch returns the epoch of the session's current holder.
type Epoch func() (int64, error)

// StatFile describes a file.
func (s *Sandbox) StatFile(ctx context.Context, p Place, path string) (*sandboxv1.FileInfo, error) {
	r, err := s.files.StatFile(node.At(ctx, p.Node), &sandboxv1.StatFileRequest{Session: p.Session, WorkspaceGeneration: p.Generation, Path: path})
	return r.GetFile(), err
}

// ListFiles lists a directory.
func (s *Sandbox) ListFiles(ctx context.Context, p Place, r *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error) {
	r.Session, r.WorkspaceGeneration = p.Session, p.Generation
	return s.files.ListFiles(node.At(ctx, p.Node), r)
}

// ReadFile reads a file until ctx ends.
func (s *Sandbox) ReadFile(ctx context.Context, p Place, r *sandboxv1.ReadFileRequest) (grpc.ServerStreamingClient[sandboxv1.ReadFileResponse], error) {
	r.Session, r.WorkspaceGeneration = p.Session, p.Generation
	return s.files.ReadFile(node.At(ctx, p.Node), r)
}

// WriteFile writes a file. It acts under the epoch at the end of the upload, which may take long.
func (s *Sandbox) WriteFile(ctx context.Context, start *sandboxv1.WriteFileStart, from Pieces, epoch Epoch) (*sandboxv1.WriteFileResponse, error) {
	ctx, cancel := context.WithCancel(to(ctx, start.GetCall())) // a stream that was not closed writes nothing
	defer cancel()
	stream, err := s.files.WriteFile(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Start{Start: start}})
	if err == nil {
		err = upload(from, epoch,
			func(b []byte) error {
				return stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Data{Data: b}})
			},
			func(n int64) error {
				return stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Epoch{Epoch: n}})
			})
	}
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF of a Send, CloseAndRecv returns the cause
		return nil, err
	}
	return stream.CloseAndRecv()
}

// UnpackFiles unpacks an archive into a new directory, as WriteFile writes a file.
func (s *Sandbox) UnpackFiles(ctx context.Context, start *sandboxv1.UnpackFilesStart, from Pieces, epoch Epoch) (*sandboxv1.FileInfo, error) {
	ctx, cancel := context.WithCancel(to(ctx, start.GetCall()))
	defer cancel()
	stream, err := s.files.UnpackFiles(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Start{Start: start}})
	if err == nil {
		err = upload(from, epoch,
			func(b []byte) error {
				return stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Data{Data: b}})
			},
			func(n int64) error {
				return stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Epoch{Epoch: n}})
			})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r, err := stream.CloseAndRecv()
	return r.GetFile(), err
}

// upload sends pieces, and then the epoch. It returns io.EOF only if the peer has ended the stream.
func upload(from Pieces, epoch Epoch, data func([]byte) error, end func(int64) error) error {
	for {
		piece, err := from()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for len(piece) > 0 {
			n := min(len(piece), pieceBytes)
			if err := data(piece[:n]); err != nil {
				return err
			}
			piece = piece[n:]
		}
	}
	n, err := epoch()
	if err != nil {
		return err
	}
	return end(n)
}

// MoveFile moves a file.
func (s *Sandbox) MoveFile(ctx context.Context, r *sandboxv1.MoveFileRequest) (*sandboxv1.FileInfo, error) {
	resp, err := s.files.MoveFile(to(ctx, r.GetCall()), r)
	return resp.GetFile(), err
}

// DeleteFile removes a file or a directory.
func (s *Sandbox) DeleteFile(ctx context.Context, r *sandboxv1.DeleteFileRequest) error {
	_, err := s.files.DeleteFile(to(ctx, r.GetCall()), r)
	return err
}

// Forwarding passes on the refusals of the sandbox.
type Forwarding struct{ io.Reader }

func (r Forwarding) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	return n, apierr.Forward(err)
}
