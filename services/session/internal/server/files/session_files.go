package files

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/artifact"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/server/reply"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// sessionFileServer implements SessionFileService from the sandbox. It has no state of its own.
type sessionFileServer struct {
	sessionv1.UnimplementedSessionFileServiceServer
	workspaces
}

func sessionFile(f *sandboxv1.FileInfo) *sessionv1.SessionFile {
	return &sessionv1.SessionFile{
		Path: f.GetPath(), Type: sessionv1.SessionFileType(f.GetType()), Size: f.GetSize(), Mode: f.GetMode(),
		ModifyTime: f.GetModifyTime(), LinkTarget: f.GetLinkTarget(), Etag: f.GetEtag(),
	}
}

// find returns the place of the session's workspace for a read.
func (s *sessionFileServer) find(ctx context.Context, session string) (store.Place, error) {
	if _, err := s.Workspaces.Owned(ctx, session); err != nil {
		return store.Place{}, err
	}
	return s.Workspaces.At(ctx, session)
}

// isRoot reports whether a path is certainly the workspace itself.
func isRoot(path string) bool { return path == "" || path == "." || path == "/workspace" }

func (s *sessionFileServer) ListSessionFiles(
	ctx context.Context, r *sessionv1.ListSessionFilesRequest,
) (*sessionv1.ListSessionFilesResponse, error) {
	place, err := s.find(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	files, err := s.Sandbox.ListFiles(ctx, placement.In(place, r.Parent), &sandboxv1.ListFilesRequest{
		Path: r.Path, Recursive: r.Recursive, PageSize: r.PageSize, PageToken: r.PageToken,
	})
	if errors.Is(err, remote.ErrNoWorkspace) && !place.Made && isRoot(r.Path) {
		return &sessionv1.ListSessionFilesResponse{}, nil
	}
	if err != nil {
		return nil, placement.Unread(err, place, r.Parent, r.Path)
	}
	resp := &sessionv1.ListSessionFilesResponse{NextPageToken: files.GetNextPageToken()}
	for _, f := range files.GetFiles() {
		resp.Files = append(resp.Files, sessionFile(f))
	}
	return resp, nil
}

func (s *sessionFileServer) ListSessionArtifacts(
	ctx context.Context, r *sessionv1.ListSessionArtifactsRequest,
) (*sessionv1.ListSessionArtifactsResponse, error) {
	place, err := s.find(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	resp, err := s.artifacts(ctx, place, r)
	none := errors.Is(err, remote.ErrNoWorkspace) && !place.Made || apierr.As[sandboxv1.ErrorReason](err) == sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND
	if none {
		return &sessionv1.ListSessionArtifactsResponse{}, nil
	}
	if err != nil {
		return nil, placement.Unread(err, place, r.Parent, artifact.Folder)
	}
	return resp, nil
}

// artifacts reads a page of the folder of artifacts. A page of the sandbox may be too large with the URIs, each up
// to three times as long as its path; then the page is read again with fewer files.
func (s *sessionFileServer) artifacts(
	ctx context.Context, place store.Place, r *sessionv1.ListSessionArtifactsRequest,
) (*sessionv1.ListSessionArtifactsResponse, error) {
	for size := r.PageSize; ; {
		files, err := s.Sandbox.ListFiles(ctx, placement.In(place, r.Parent), &sandboxv1.ListFilesRequest{
			Path: artifact.Folder, Recursive: true, PageSize: size, PageToken: r.PageToken,
		})
		if err != nil {
			return nil, err
		}
		resp := &sessionv1.ListSessionArtifactsResponse{Artifacts: artifact.Of(r.Parent, files.GetFiles()), NextPageToken: files.GetNextPageToken()}
		if len(files.GetFiles()) < 2 || proto.Size(resp) <= page.MaxBytes {
			return resp, nil
		}
		size = int32(len(files.GetFiles()) / 2)
	}
}

func (s *sessionFileServer) GetSessionFile(
	ctx context.Context, r *sessionv1.GetSessionFileRequest,
) (*sessionv1.GetSessionFileResponse, error) {
	place, err := s.find(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	f, err := s.Sandbox.StatFile(ctx, placement.In(place, r.Parent), r.Path)
	if err != nil {
		return nil, placement.Unread(err, place, r.Parent, r.Path)
	}
	return &sessionv1.GetSessionFileResponse{File: sessionFile(f)}, nil
}

func (s *sessionFileServer) ReadSessionFile(
	r *sessionv1.ReadSessionFileRequest, stream grpc.ServerStreamingServer[sessionv1.ReadSessionFileResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context()) // ends the sandbox's stream in every case
	defer cancel()
	place, err := s.find(ctx, r.Parent)
	if err != nil {
		return err
	}
	from, err := s.Sandbox.ReadFile(ctx, placement.In(place, r.Parent), &sandboxv1.ReadFileRequest{
		Path: r.Path, Range: &sandboxv1.ReadFileRequest_Bytes{Bytes: &sandboxv1.ByteRange{Offset: r.Offset, Limit: r.Limit}},
	})
	if err != nil {
		return placement.Unread(err, place, r.Parent, r.Path)
	}
	for {
		piece, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return placement.Unread(err, place, r.Parent, r.Path)
		}
		out := &sessionv1.ReadSessionFileResponse{Kind: &sessionv1.ReadSessionFileResponse_Data{Data: piece.GetData()}}
		if f := piece.GetFile(); f != nil {
			out.Kind = &sessionv1.ReadSessionFileResponse_File{File: sessionFile(f)}
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// archiveFormat returns the sandbox's name of a format.
func archiveFormat(f sessionv1.SessionArchiveFormat) sandboxv1.ArchiveFormat {
	switch f {
	case sessionv1.SessionArchiveFormat_SESSION_ARCHIVE_FORMAT_TAR:
		return sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR
	case sessionv1.SessionArchiveFormat_SESSION_ARCHIVE_FORMAT_ZIP:
		return sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP
	default:
		return sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP
	}
}

func (s *sessionFileServer) ExportSessionFiles(
	r *sessionv1.ExportSessionFilesRequest, stream grpc.ServerStreamingServer[sessionv1.ExportSessionFilesResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	place, err := s.find(ctx, r.Parent)
	if err != nil {
		return err
	}
	from, err := s.Sandbox.ExportFiles(ctx, placement.In(place, r.Parent), &sandboxv1.ExportWorkspaceRequest{
		Path: r.Path, Format: archiveFormat(r.Format),
	})
	if err != nil {
		return placement.Unread(err, place, r.Parent, r.Path)
	}
	to := reply.Pieces(func(b []byte) error { return stream.Send(&sessionv1.ExportSessionFilesResponse{Data: b}) })
	_, err = io.CopyBuffer(to, remote.Forwarding{Reader: from}, make([]byte, reply.PieceBytes))
	return err
}

// change makes a change as the session's holder. The first change makes the workspace.
func (s *sessionFileServer) change(ctx context.Context, session, method, requestID string, do func(*commonv1.CallRef) error) error {
	_, err := retryStaleEpoch(func() (struct{}, error) {
		call, place, err := s.ready(ctx, session, method, requestID)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, placement.LostWorkspace(do(call), place, session)
	})
	return unchanged(err, session, requestID)
}

// unchanged returns the error of a change that was not made.
func unchanged(err error, session, requestID string) error {
	if errors.Is(err, remote.ErrStaleEpoch) {
		err = store.ErrStaleEpoch
	}
	if errors.Is(err, store.ErrStaleEpoch) {
		return refusal.Store(err, refusal.Subject{Session: session})
	}
	return forward(err, session, requestID)
}

// ready returns the call of a change in a workspace that exists.
func (s *sessionFileServer) ready(ctx context.Context, session, method, requestID string) (*commonv1.CallRef, store.Place, error) {
	found, err := s.Workspaces.Owned(ctx, session)
	if err != nil {
		return nil, store.Place{}, err
	}
	call, place, err := s.callRef(ctx, session, "file", method, requestID)
	if err != nil {
		return nil, place, err
	}
	if call.Node == "" {
		if err := s.Workspaces.Nodes.Place(ctx, s.Store, call); err != nil {
			return nil, place, refusal.Store(err, refusal.Subject{Session: session})
		}
	}
	_, err = s.Sandbox.StatFile(ctx, remote.Place{Session: session, Node: call.Node, Generation: call.WorkspaceGeneration}, "")
	if errors.Is(err, remote.ErrNoWorkspace) {
		err = s.ensureWorkspace(ctx, found, call)
	}
	return call, place, placement.LostWorkspace(err, place, session)
}

func (s *sessionFileServer) MoveSessionFile(
	ctx context.Context, r *sessionv1.MoveSessionFileRequest,
) (*sessionv1.MoveSessionFileResponse, error) {
	resp := &sessionv1.MoveSessionFileResponse{}
	err := s.change(ctx, r.Parent, "MoveSessionFile", r.RequestId, func(call *commonv1.CallRef) error {
		f, err := s.Sandbox.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: call, Path: r.Path, NewPath: r.NewPath, Overwrite: r.Overwrite})
		resp.File = sessionFile(f)
		return err
	})
	return resp, err
}

func (s *sessionFileServer) DeleteSessionFile(
	ctx context.Context, r *sessionv1.DeleteSessionFileRequest,
) (*sessionv1.DeleteSessionFileResponse, error) {
	return &sessionv1.DeleteSessionFileResponse{}, s.change(ctx, r.Parent, "DeleteSessionFile", r.RequestId, func(call *commonv1.CallRef) error {
		return s.Sandbox.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: call, Path: r.Path, Recursive: r.Recursive})
	})
}

// epoch returns the epoch of the session's holder at the end of an upload.
func (s *sessionFileServer) epoch(ctx context.Context, session string) remote.Epoch {
	return func() (int64, error) {
		_, epoch, err := s.Store.PlaceOf(ctx, request.Key(ctx, session))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, refusal.Store(err, refusal.Subject{Session: session})
		}
		return max(epoch, 1), nil
	}
}

func (s *sessionFileServer) WriteSessionFile(
	stream grpc.ClientStreamingServer[sessionv1.WriteSessionFileRequest, sessionv1.WriteSessionFileResponse],
) error {
	ctx := stream.Context()
	start, err := reply.Start(stream)
	if err != nil {
		return err
	}
	if start.RequestId, err = reply.NameUpload(stream, start.RequestId); err != nil {
		return err
	}
	call, place, err := s.ready(ctx, start.Parent, "WriteSessionFile", start.RequestId)
	if err != nil {
		return apierr.Forward(err)
	}
	from := func() ([]byte, error) { return reply.Data(stream) }
	written, err := s.Sandbox.WriteFile(ctx, &sandboxv1.WriteFileStart{
		Call: call, Path: start.Path, Mode: start.Mode, IfEtag: start.IfEtag, CreateOnly: start.CreateOnly,
	}, from, s.epoch(ctx, start.Parent))
	if err != nil {
		return unchanged(placement.LostWorkspace(err, place, start.Parent), start.Parent, start.RequestId)
	}
	return stream.SendAndClose(&sessionv1.WriteSessionFileResponse{File: sessionFile(written.GetFile()), Created: written.GetCreated()})
}

func (s *sessionFileServer) ImportSessionFiles(
	stream grpc.ClientStreamingServer[sessionv1.ImportSessionFilesRequest, sessionv1.ImportSessionFilesResponse],
) error {
	ctx := stream.Context()
	start, err := reply.Start(stream)
	if err != nil {
		return err
	}
	if start.RequestId, err = reply.NameUpload(stream, start.RequestId); err != nil {
		return err
	}
	call, place, err := s.ready(ctx, start.Parent, "ImportSessionFiles", start.RequestId)
	if err != nil {
		return apierr.Forward(err)
	}
	from := func() ([]byte, error) { return reply.Data(stream) }
	made, err := s.Sandbox.UnpackFiles(ctx, &sandboxv1.UnpackFilesStart{
		Call: call, Path: start.Path, Format: archiveFormat(start.Format),
	}, from, s.epoch(ctx, start.Parent))
	if err != nil {
		return unchanged(placement.LostWorkspace(err, place, start.Parent), start.Parent, start.RequestId)
	}
	return stream.SendAndClose(&sessionv1.ImportSessionFilesResponse{File: sessionFile(made)})
}
