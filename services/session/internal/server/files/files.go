package files

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/server/reply"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// FileServer implements FileService.
type FileServer struct {
	sessionv1.UnimplementedFileServiceServer
	*Config
}

// unavailable logs the cause of an error that callers do not see.
func (s *FileServer) unavailable(ctx context.Context, err error, name string) {
	if blob.Unavailable(err) {
		s.Log.WarnContext(ctx, "a file cannot be served", "file", name, "error", err)
	}
}

// file returns a file that the caller sees.
func (s *FileServer) file(ctx context.Context, name string) (*store.FileRow, error) {
	row, err := s.Files.Find(ctx, request.Caller(ctx), name)
	if err != nil {
		return nil, refusal.File(err, name, "")
	}
	return row, nil
}

// CreateFile begins a file.
func (s *FileServer) CreateFile(ctx context.Context, r *sessionv1.CreateFileRequest) (*sessionv1.CreateFileResponse, error) {
	if s.Files == nil {
		return nil, refusal.NoFileStore()
	}
	p, f := request.Caller(ctx), r.GetFile()
	if f == nil {
		f = &sessionv1.File{}
	}
	if f.GetSize() > s.Files.MaxBytes {
		return nil, refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
			fmt.Sprintf("A file may have at most %d bytes (session.files.max-bytes).", s.Files.MaxBytes), apierr.Field("file.size", "is too large"))
	}
	promised, err := hex.DecodeString(f.Sha256)
	if err != nil {
		return nil, refusal.Input("file.sha256", "It must be a SHA-256 in hex.")
	}
	n := store.NewFile{
		Owner: store.Owner{Tenant: p.Tenant, User: p.User}, ID: id.New(), Promised: promised, UploadTTL: s.Files.UploadTTL, Limits: s.Files.Limits,
		File: &sessionv1.File{Filename: f.Filename, MediaType: cmp.Or(f.MediaType, blob.AnyType), Size: f.Size},
		TTL:  cmp.Or(r.GetTtl().AsDuration(), s.TTL), Request: request.Lasting("CreateFile", p.User, r),
	}
	if n.TTL > 0 {
		n.TTL = max(n.TTL, time.Second)
	}
	answer, err := s.Store.CreateFile(ctx, n)
	if errors.Is(err, store.ErrUploads) {
		return nil, s.tooManyUploads("users/" + p.User)
	}
	if err != nil {
		return nil, refusal.File(err, "", r.RequestId)
	}
	row, err := s.file(ctx, "files/"+answer.Value)
	if err != nil {
		return nil, err
	}
	if f.Size != nil && f.GetSize() == 0 && row.File.State == sessionv1.FileState_FILE_STATE_UPLOADING {
		if row, err = s.appendTo(ctx, row, true, strings.NewReader("")); err != nil {
			return nil, err
		}
	}
	return &sessionv1.CreateFileResponse{File: row.File}, nil
}

// tooManyUploads returns the error for a user who has as many open uploads as a user may have.
func (s *FileServer) tooManyUploads(user string) error {
	most := s.Files.Limits.Uploads
	return refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
		fmt.Sprintf("%s has %d uploads that have not ended, the most that a user may have (session.files.user-uploads). "+
			"End an upload or delete its file, then try again. An upload that stands still for %v is deleted.", user, most, s.Files.UploadTTL),
		apierr.Quota(user, fmt.Sprintf("session.files.user-uploads: %d open uploads", most)))
}

// appendTo adds bytes to a file and returns the file.
func (s *FileServer) appendTo(ctx context.Context, row *store.FileRow, last bool, from io.Reader) (*store.FileRow, error) {
	err := s.Files.Append(ctx, row, last, from)
	s.unavailable(ctx, err, row.File.Name)
	if errors.Is(err, store.ErrOffset) {
		now, err := s.file(ctx, row.File.Name)
		if err != nil {
			return nil, err
		}
		return nil, wrongOffset(now.File)
	}
	if err != nil {
		return nil, refusal.File(err, row.File.Name, "")
	}
	return s.file(ctx, row.File.Name)
}

func wrongOffset(f *sessionv1.File) error {
	return refusal.Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_WRONG_OFFSET,
		fmt.Sprintf("%s has received %d bytes. Append from this offset on.", f.Name, f.Received),
		apierr.Metadata(map[string]string{"offset": strconv.FormatInt(f.Received, 10)}))
}

// AppendFile adds bytes to a file.
func (s *FileServer) AppendFile(stream grpc.ClientStreamingServer[sessionv1.AppendFileRequest, sessionv1.AppendFileResponse]) error {
	ctx := stream.Context()
	start, err := reply.Start(stream)
	if err != nil {
		return err
	}
	row, err := s.file(ctx, start.Name)
	switch {
	case err != nil:
		return err
	case row.File.State == sessionv1.FileState_FILE_STATE_READY:
		return refusal.File(store.ErrReady, start.Name, "")
	case row.File.Received != start.Offset:
		return wrongOffset(row.File)
	}
	row, err = s.appendTo(ctx, row, start.Last, &appended{stream: stream})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&sessionv1.AppendFileResponse{File: row.File})
}

// appended reads the bytes of a stream.
type appended struct {
	stream    grpc.ClientStreamingServer[sessionv1.AppendFileRequest, sessionv1.AppendFileResponse]
	remaining []byte
}

func (a *appended) Read(b []byte) (int, error) {
	for len(a.remaining) == 0 {
		data, err := reply.Data(a.stream)
		if err != nil {
			return 0, err
		}
		a.remaining = data
	}
	n := copy(b, a.remaining)
	a.remaining = a.remaining[n:]
	return n, nil
}

// GetFile describes a file.
func (s *FileServer) GetFile(ctx context.Context, r *sessionv1.GetFileRequest) (*sessionv1.GetFileResponse, error) {
	row, err := s.file(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	return &sessionv1.GetFileResponse{File: row.File}, nil
}

// filesAfter is where a page of files begins.
type filesAfter struct {
	Time time.Time
	ID   string
}

// ListFiles lists a page of files.
func (s *FileServer) ListFiles(ctx context.Context, r *sessionv1.ListFilesRequest) (*sessionv1.ListFilesResponse, error) {
	if s.Files == nil {
		return nil, refusal.NoFileStore()
	}
	p := request.Caller(ctx)
	at := store.FilePage{Tenant: p.Tenant, User: p.User}
	if p.Role >= principal.RoleOperator {
		at.User = ""
	}
	scope := strings.Join([]string{"ListFiles", at.Tenant, at.User}, "\x00")
	all, next, err := request.List(scope, r, refusal.Subject{}, fileAt, func(after filesAfter, n int) ([]*sessionv1.File, error) {
		at.AfterTime, at.AfterID, at.Limit = after.Time, after.ID, n
		return s.Store.ListFiles(ctx, at)
	})
	return &sessionv1.ListFilesResponse{Files: all, NextPageToken: next}, err
}

func fileAt(f *sessionv1.File) filesAfter {
	return filesAfter{f.CreateTime.AsTime(), request.LastSegment(f.Name)}
}

// ReadFile streams a file.
func (s *FileServer) ReadFile(r *sessionv1.ReadFileRequest, stream grpc.ServerStreamingServer[sessionv1.ReadFileResponse]) error {
	ctx := stream.Context()
	row, err := s.file(ctx, r.Name)
	if err != nil {
		return err
	}
	if row.File.State != sessionv1.FileState_FILE_STATE_READY {
		return refusal.FileNotComplete(row.File)
	}
	if err := stream.Send(&sessionv1.ReadFileResponse{Kind: &sessionv1.ReadFileResponse_File{File: row.File}}); err != nil {
		return err
	}
	size := max(row.File.GetSize()-r.Offset, 0)
	if r.Limit > 0 {
		size = min(size, r.Limit)
	}
	err = s.Files.Read(ctx, row.Tenant, row.ID, r.Offset, size, func(b []byte) error {
		return stream.Send(&sessionv1.ReadFileResponse{Kind: &sessionv1.ReadFileResponse_Data{Data: b}})
	})
	s.unavailable(ctx, err, r.Name)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return refusal.File(err, r.Name, "")
}

// DeleteFile deletes a file.
func (s *FileServer) DeleteFile(ctx context.Context, r *sessionv1.DeleteFileRequest) (*sessionv1.DeleteFileResponse, error) {
	if s.Files == nil {
		return nil, refusal.NoFileStore()
	}
	p, k := request.Caller(ctx), request.Lasting("DeleteFile", r.Name, r)
	row, err := s.Store.GetFile(ctx, p.Tenant, strings.TrimPrefix(r.Name, "files/"))
	if err == nil && !p.Sees(row.User) {
		return nil, refusal.FileNotFound(r.Name)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, refusal.File(err, r.Name, r.RequestId)
	}
	// A file that is gone may have been deleted by the same request.
	if _, err := s.Store.DeleteFile(ctx, p.Tenant, strings.TrimPrefix(r.Name, "files/"), k); err != nil {
		return nil, refusal.File(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteFileResponse{}, nil
}
