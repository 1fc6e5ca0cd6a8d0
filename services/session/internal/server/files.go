package server

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
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// fileService serves the files of users.
type fileService struct {
	sessionv1.UnimplementedFileServiceServer
	*Config
}

// FileService returns the server of FileService.
func (s *Server) FileService() sessionv1.FileServiceServer { return &fileService{Config: s.Config} }

// ready refuses requests for files if there is no store for them.
func (s *fileService) ready() error {
	if s.Files != nil {
		return nil
	}
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NO_FILE_STORE,
		"This server keeps no files: with Postgres it needs an object store that all replicas reach. Ask the operator to set session.files.store.",
		apierr.Precondition("FILE_STORE", "files", "no store is configured"))
}

func fileNotFound(name string) error {
	return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND,
		fmt.Sprintf("There is no file %s. It was deleted, its time has come, or it never existed; list files to see which there are (GET /v1/files).", name),
		apierr.Resource("fairlead.dev/File", name, "not found"))
}

// fileError is the only table from the errors of files to the API's.
func fileError(err error, name, requestID string) error {
	wrong := func(c codes.Code, r sessionv1.ErrorReason, text string, opts ...apierr.Option) error {
		return refusal.Of(c, r, text, opts...)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fileNotFound(name)
	case errors.Is(err, store.ErrReady):
		return wrong(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE,
			"The upload of "+name+" has ended. Create another file for other content.", apierr.Precondition("FILE_STATE", name, "the upload has ended"))
	case errors.Is(err, store.ErrFull):
		return wrong(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
			"The files of the user or the tenant would be larger than they may be. Delete files, or ask the operator for more.", apierr.Quota("files", "bytes of files"))
	case errors.Is(err, blob.ErrTooLong):
		return wrong(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
			"The content of "+name+" is longer than the file's size, or than a file may be. What fits was kept.", apierr.Field("data", "is too long"))
	case errors.Is(err, blob.ErrChecksum):
		return wrong(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_WRONG_CHECKSUM,
			"The content of "+name+" does not have the SHA-256 that was promised, so the file was deleted. Upload it again.", apierr.Field("file.sha256", "is another one"))
	case errors.Is(err, blob.ErrRefused):
		return wrong(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_FILE_REFUSED,
			"The scanner of this server refuses the content of "+name+", so the file was deleted.")
	case errors.Is(err, blob.ErrScanner):
		return wrong(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE,
			"The scanner of this server does not answer, so no upload can end. Try again: append nothing at the end.", apierr.RetryAfter(10*time.Second))
	case errors.Is(err, blob.ErrObjects):
		return wrong(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE,
			"The store of files cannot be reached, or lacks content. Try again.", apierr.RetryAfter(time.Second))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

// unavailable logs the cause of an error that callers do not see.
func (s *fileService) unavailable(ctx context.Context, err error, name string) {
	if errors.Is(err, blob.ErrObjects) || errors.Is(err, blob.ErrScanner) {
		s.Log.WarnContext(ctx, "a file cannot be served", "file", name, "error", err)
	}
}

// file returns a file that the caller sees.
func (s *fileService) file(ctx context.Context, name string) (*store.FileRow, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	row, err := s.Store.GetFile(ctx, principal.Tenant(ctx), strings.TrimPrefix(name, "files/"))
	if err == nil && !request.Caller(ctx).Sees(row.User) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fileError(err, name, "")
	}
	return row, nil
}

// anyType is the media type of a file without one.
const anyType = "application/octet-stream"

// CreateFile begins a file.
func (s *fileService) CreateFile(ctx context.Context, r *sessionv1.CreateFileRequest) (*sessionv1.CreateFileResponse, error) {
	if err := s.ready(); err != nil {
		return nil, err
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
		File: &sessionv1.File{Filename: f.Filename, MediaType: cmp.Or(f.MediaType, anyType), Size: f.Size},
		TTL:  cmp.Or(r.GetTtl().AsDuration(), s.FileTTL), Request: request.Lasting("CreateFile", p.User, r),
	}
	if n.TTL > 0 {
		n.TTL = max(n.TTL, time.Second)
	}
	answer, err := s.Store.CreateFile(ctx, n)
	if errors.Is(err, store.ErrUploads) {
		return nil, s.tooManyUploads("users/" + p.User)
	}
	if err != nil {
		return nil, fileError(err, "", r.RequestId)
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
func (s *fileService) tooManyUploads(user string) error {
	most := s.Files.Limits.Uploads
	return refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
		fmt.Sprintf("%s has %d uploads that have not ended, the most that a user may have (session.files.user-uploads). "+
			"End an upload or delete its file, then try again. An upload that stands still for %v is deleted.", user, most, s.Files.UploadTTL),
		apierr.Quota(user, fmt.Sprintf("session.files.user-uploads: %d open uploads", most)))
}

// appendTo adds bytes to a file and returns the file.
func (s *fileService) appendTo(ctx context.Context, row *store.FileRow, last bool, from io.Reader) (*store.FileRow, error) {
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
		return nil, fileError(err, row.File.Name, "")
	}
	return s.file(ctx, row.File.Name)
}

func wrongOffset(f *sessionv1.File) error {
	return refusal.Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_WRONG_OFFSET,
		fmt.Sprintf("%s has received %d bytes. Append from this offset on.", f.Name, f.Received),
		apierr.Metadata(map[string]string{"offset": strconv.FormatInt(f.Received, 10)}))
}

// AppendFile adds bytes to a file.
func (s *fileService) AppendFile(stream grpc.ClientStreamingServer[sessionv1.AppendFileRequest, sessionv1.AppendFileResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return refusal.Input("kind", "The first request has to be start.")
	}
	row, err := s.file(ctx, start.Name)
	switch {
	case err != nil:
		return err
	case row.File.State == sessionv1.FileState_FILE_STATE_READY:
		return fileError(store.ErrReady, start.Name, "")
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
		m, err := a.stream.Recv()
		if err != nil {
			return 0, err
		}
		if m.GetStart() != nil {
			return 0, refusal.Input("kind", "Start is the first request, and only the first.")
		}
		a.remaining = m.GetData()
	}
	n := copy(b, a.remaining)
	a.remaining = a.remaining[n:]
	return n, nil
}

// GetFile describes a file.
func (s *fileService) GetFile(ctx context.Context, r *sessionv1.GetFileRequest) (*sessionv1.GetFileResponse, error) {
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
func (s *fileService) ListFiles(ctx context.Context, r *sessionv1.ListFilesRequest) (*sessionv1.ListFilesResponse, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	p := request.Caller(ctx)
	at := store.FilePage{Tenant: p.Tenant, User: p.User}
	if p.Role >= principal.RoleOperator {
		at.User = ""
	}
	scope := strings.Join([]string{"ListFiles", at.Tenant, at.User}, "\x00")
	if r.PageToken != "" {
		var after filesAfter
		if err := page.Decode(r.PageToken, scope, &after); err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
		at.AfterTime, at.AfterID = after.Time, after.ID
	}
	all, more, err := page.Fill(page.Size(r.PageSize, 50, 1000), func(last *sessionv1.File, n int) ([]*sessionv1.File, error) {
		if last != nil {
			at.AfterTime, at.AfterID = last.CreateTime.AsTime(), strings.TrimPrefix(last.Name, "files/")
		}
		at.Limit = n
		return s.Store.ListFiles(ctx, at)
	})
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	resp := &sessionv1.ListFilesResponse{Files: all}
	if more {
		last := all[len(all)-1]
		resp.NextPageToken = page.Encode(scope, filesAfter{last.CreateTime.AsTime(), strings.TrimPrefix(last.Name, "files/")})
	}
	return resp, nil
}

func notComplete(f *sessionv1.File) error {
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE,
		fmt.Sprintf("%s is not complete: %d bytes of it have arrived. Wait until its upload has ended.", f.Name, f.Received),
		apierr.Precondition("FILE_STATE", f.Name, "the upload has not ended"))
}

// ReadFile streams a file.
func (s *fileService) ReadFile(r *sessionv1.ReadFileRequest, stream grpc.ServerStreamingServer[sessionv1.ReadFileResponse]) error {
	ctx := stream.Context()
	row, err := s.file(ctx, r.Name)
	if err != nil {
		return err
	}
	if row.File.State != sessionv1.FileState_FILE_STATE_READY {
		return notComplete(row.File)
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
	return fileError(err, r.Name, "")
}

// DeleteFile deletes a file.
func (s *fileService) DeleteFile(ctx context.Context, r *sessionv1.DeleteFileRequest) (*sessionv1.DeleteFileResponse, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	p, k := request.Caller(ctx), request.Lasting("DeleteFile", r.Name, r)
	row, err := s.Store.GetFile(ctx, p.Tenant, strings.TrimPrefix(r.Name, "files/"))
	if err == nil && !p.Sees(row.User) {
		return nil, fileNotFound(r.Name)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fileError(err, r.Name, r.RequestId)
	}
	// A file that is gone may have been deleted by the same request.
	if _, err := s.Store.DeleteFile(ctx, p.Tenant, strings.TrimPrefix(r.Name, "files/"), k); err != nil {
		return nil, fileError(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteFileResponse{}, nil
}
