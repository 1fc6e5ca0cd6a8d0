package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// readFile answers with a file of a workspace.
func (s *Server) readFile(w http.ResponseWriter, r *http.Request, names []string) error {
	if _, err := parameters(r.URL.RawQuery); err != nil {
		return err
	}
	return s.download(w, r, func(ctx context.Context, offset, limit int64) (version, func() ([]byte, error), error) {
		stream, err := s.Files.ReadSessionFile(ctx, &sessionv1.ReadSessionFileRequest{Parent: names[0], Path: names[1], Offset: offset, Limit: limit})
		if err != nil {
			return version{}, nil, err
		}
		first, err := stream.Recv()
		if err != nil {
			return version{}, nil, err
		}
		f, next := first.GetFile(), func() ([]byte, error) {
			m, err := stream.Recv()
			return m.GetData(), err
		}
		return version{
			name: path.Base(f.GetPath()), mediaType: mediaType(f.GetPath()), etag: f.GetEtag(), size: f.GetSize(), modified: f.GetModifyTime().AsTime(),
		}, next, nil
	})
}

// writeFile makes the body a file of a workspace.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, names []string) error {
	start, err := written(r, names)
	if err != nil {
		return err
	}
	resp, err := upload(s, w, r, s.Files.WriteSessionFile,
		&sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Start{Start: start}},
		func(b []byte) *sessionv1.WriteSessionFileRequest {
			return &sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Data{Data: b}}
		})
	switch reason := apierr.As[sandboxv1.ErrorReason](err); {
	case start.IfEtag != "" && reason == sandboxv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH,
		start.CreateOnly && reason == sandboxv1.ErrorReason_ERROR_REASON_FILE_EXISTS:
		return problem.PreconditionFailed(err)
	case err != nil:
		return err
	}
	w.Header().Set("ETag", `"`+resp.GetFile().GetEtag()+`"`)
	status := http.StatusOK
	if resp.GetCreated() {
		status = http.StatusCreated
	}
	return answer(w, status, resp.GetFile())
}

// written reads the parameters beside the data.
func written(r *http.Request, names []string) (*sessionv1.WriteSessionFileStart, error) {
	query, err := parameters(r.URL.RawQuery, "mode")
	if err != nil {
		return nil, err
	}
	start := &sessionv1.WriteSessionFileStart{Parent: names[0], Path: names[1]}
	if text := query["mode"]; text != "" {
		mode, err := strconv.ParseUint(text, 8, 9)
		if err != nil {
			return nil, problem.BadParameter("mode", "is not the permission bits in octal, such as 755")
		}
		start.Mode = uint32(mode)
	}
	if start.RequestId, err = idempotencyKey(r); err != nil {
		return nil, err
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		given := strings.Join(r.Header.Values(name), ",")
		etag, quoted := strings.CutPrefix(given, `"`)
		switch {
		case given == "":
		case name == "If-None-Match" && given == "*":
			start.CreateOnly = true
		case name == "If-Match" && quoted && strings.Index(etag, `"`) == len(etag)-1 && len(etag) > 1:
			start.IfEtag = strings.TrimSuffix(etag, `"`)
		case name == "If-Match":
			return nil, problem.BadCondition(name, `must be one ETag of the file, as "..."`)
		default:
			return nil, problem.BadCondition(name, "can only be * here: the file must be new")
		}
	}
	return start, nil
}

// deleteFile removes a file of a workspace.
func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request, names []string) error {
	query, err := parameters(r.URL.RawQuery, "recursive")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "true", "false"}, query["recursive"]) {
		return problem.BadParameter("recursive", "is neither true nor false")
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	resp, err := s.Files.DeleteSessionFile(r.Context(), &sessionv1.DeleteSessionFileRequest{
		Parent: names[0], Path: names[1], Recursive: query["recursive"] == "true", RequestId: key,
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, resp)
}

// archiveForm is a format of archives in HTTP.
type archiveForm struct {
	format     sessionv1.SessionArchiveFormat
	mediaTypes []string
}

var archiveForms = map[string]archiveForm{
	"tar":    {sessionv1.SessionArchiveFormat_SESSION_ARCHIVE_FORMAT_TAR, []string{"application/x-tar"}},
	"tar.gz": {sessionv1.SessionArchiveFormat_SESSION_ARCHIVE_FORMAT_TAR_GZIP, []string{"application/gzip", "application/x-gzip"}},
	"zip":    {sessionv1.SessionArchiveFormat_SESSION_ARCHIVE_FORMAT_ZIP, []string{"application/zip", "application/x-zip-compressed"}},
}

var errBadFormat = problem.BadParameter("format", "is not tar, tar.gz or zip")

// archiveFiles answers with a directory as an archive.
func (s *Server) archiveFiles(w http.ResponseWriter, r *http.Request, names []string) error {
	query, err := parameters(r.URL.RawQuery, "path", "format")
	if err != nil {
		return err
	}
	end := query["format"]
	if end == "" {
		end = "tar.gz"
	}
	as, ok := archiveForms[end]
	if !ok {
		return errBadFormat
	}
	stream, err := s.Files.ExportSessionFiles(r.Context(), &sessionv1.ExportSessionFilesRequest{Parent: names[0], Path: query["path"], Format: as.format})
	if err != nil {
		return err
	}
	piece, err := stream.Recv() // the service refuses before its first piece
	if errors.Is(err, io.EOF) {
		return problem.Internal() // no archive is empty
	}
	if err != nil {
		return err
	}
	name := path.Base(query["path"])
	if name == "." || name == "/" {
		name = strings.ReplaceAll(names[0], "/", "-")
	}
	w.Header().Set("Content-Type", as.mediaTypes[0])
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + "." + end}))
	return s.stream(w, r, piece.GetData(), func() ([]byte, error) {
		piece, err := stream.Recv()
		return piece.GetData(), err
	})
}

// unpackFiles makes the body, an archive, a new directory.
func (s *Server) unpackFiles(w http.ResponseWriter, r *http.Request, names []string) error {
	start, err := unpacked(r, names)
	if err != nil {
		return err
	}
	resp, err := upload(s, w, r, s.Files.ImportSessionFiles,
		&sessionv1.ImportSessionFilesRequest{Kind: &sessionv1.ImportSessionFilesRequest_Start{Start: start}},
		func(b []byte) *sessionv1.ImportSessionFilesRequest {
			return &sessionv1.ImportSessionFilesRequest{Kind: &sessionv1.ImportSessionFilesRequest_Data{Data: b}}
		})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, resp.GetFile())
}

// unpacked reads the parameters beside the archive. Its format is in the query or follows from its type.
func unpacked(r *http.Request, names []string) (*sessionv1.ImportSessionFilesStart, error) {
	query, err := parameters(r.URL.RawQuery, "path", "format")
	if err != nil {
		return nil, err
	}
	given := r.Header.Get("Content-Type")
	as, ok := archiveForms[query["format"]]
	if query["format"] == "" {
		media, _, _ := mime.ParseMediaType(given)
		for _, form := range archiveForms {
			if slices.Contains(form.mediaTypes, media) {
				as, ok = form, true
			}
		}
		if !ok {
			return nil, problem.WithStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, problem.Domain, problem.ReasonUnsupportedMediaType,
				fmt.Sprintf("Content-Type says %s; send application/gzip, application/zip or application/x-tar, or name the format in the query", problem.Excerpt(given))))
		}
	}
	if !ok {
		return nil, errBadFormat
	}
	if query["path"] == "" {
		return nil, problem.BadParameter("path", "is missing: name the new directory")
	}
	key, err := idempotencyKey(r)
	return &sessionv1.ImportSessionFilesStart{Parent: names[0], Path: query["path"], Format: as.format, RequestId: key}, err
}
