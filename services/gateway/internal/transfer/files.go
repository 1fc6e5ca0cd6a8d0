package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// readBlob answers with a file of a user.
func (s *Server) readBlob(w http.ResponseWriter, r *http.Request, names []string) error {
	if _, err := parameters(r.URL.RawQuery); err != nil {
		return err
	}
	return s.download(w, r, func(ctx context.Context, offset, limit int64) (version, func() ([]byte, error), error) {
		stream, err := s.Blobs.ReadFile(ctx, &sessionv1.ReadFileRequest{Name: names[0], Offset: offset, Limit: limit})
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
		v := version{name: f.GetFilename(), mediaType: f.GetMediaType(), etag: f.GetSha256(), size: f.GetSize(), modified: f.GetCreateTime().AsTime()}
		if v.name == "" {
			v.name = strings.TrimPrefix(f.GetName(), "files/")
		}
		return v, next, nil
	})
}

// mostField bounds a field of a form, in bytes.
const mostField = 1 << 10

// uploadForm makes the file of a form (multipart/form-data) a file of the user. Its other fields come first.
func (s *Server) uploadForm(w http.ResponseWriter, r *http.Request, _ []string) error {
	if _, err := parameters(r.URL.RawQuery); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	body := codec.NewPatient(w, r, s.BodyTimeout)
	r.Body = io.NopCloser(body)
	form, err := r.MultipartReader()
	if err != nil {
		return problem.WithStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, problem.Domain, problem.ReasonUnsupportedMediaType,
			fmt.Sprintf("Content-Type says %s; send a form with a file, as multipart/form-data with a boundary", problem.Excerpt(r.Header.Get("Content-Type")))))
	}
	create := &sessionv1.CreateFileRequest{File: &sessionv1.File{}, RequestId: key}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return problem.BodyMalformed("file", "the form has no file: one part needs a filename")
		}
		if err != nil {
			return broken(err, s.BodyTimeout)
		}
		if part.FileName() != "" {
			create.File.Filename, create.File.MediaType = part.FileName(), part.Header.Get("Content-Type")
			return s.uploadPart(w, r, create, part)
		}
		if err := readField(create, part); err != nil {
			return err
		}
	}
}

// readField reads a field of a form.
func readField(create *sessionv1.CreateFileRequest, part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, mostField))
	if err != nil {
		return problem.BodyMalformed(part.FormName(), "the form broke off")
	}
	switch part.FormName() {
	case "sha256":
		create.File.Sha256 = string(text)
	case "ttl":
		ttl, err := time.ParseDuration(string(text))
		if err != nil {
			return problem.BodyMalformed("ttl", "ttl is not a duration such as 3600s")
		}
		create.Ttl = durationpb.New(ttl)
	default:
		return problem.BodyMalformed(part.FormName(), "the form has an unknown field; there are sha256, ttl and the file, which comes last")
	}
	return nil
}

// uploadPart sends the file of a form.
func (s *Server) uploadPart(w http.ResponseWriter, r *http.Request, create *sessionv1.CreateFileRequest, from io.Reader) error {
	made, err := s.Blobs.CreateFile(r.Context(), create)
	if err != nil {
		return err
	}
	f := made.GetFile()
	w.Header().Set(keyHeader, create.RequestId)
	if f.GetState() == sessionv1.FileState_FILE_STATE_READY { // the same request made it
		return answer(w, http.StatusOK, f)
	}
	sent, err := s.appendFile(r.Context(), &sessionv1.AppendFileStart{Name: f.GetName(), Offset: 0, Last: true}, from, false)
	if err == nil {
		return answer(w, http.StatusOK, sent)
	}
	if f.GetReceived() == 0 { // no client knows the name
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.BodyTimeout)
		defer cancel()
		_, _ = s.Blobs.DeleteFile(ctx, &sessionv1.DeleteFileRequest{Name: f.GetName()}) // otherwise it is deleted in time
	}
	return err
}

// appendFile sends the rest of a file. If from breaks off, keep has the service keep what was sent.
func (s *Server) appendFile(ctx context.Context, start *sessionv1.AppendFileStart, from io.Reader, keep bool) (*sessionv1.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a stream that was not closed must not count as complete
	stream, err := s.Blobs.AppendFile(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}})
	var readErr error
	for buf := make([]byte, pieceBytes); err == nil && readErr == nil; {
		var n int
		if n, readErr = codec.Fill(from, buf); n > 0 {
			err = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: buf[:n]}})
		}
	}
	complete := readErr == nil || errors.Is(readErr, io.EOF)
	if err == nil && !complete && !keep {
		return nil, broken(readErr, s.BodyTimeout)
	}
	resp, err := stream.CloseAndRecv() // also returns the cause of a failed Send
	if err == nil && !complete {
		err = broken(readErr, s.BodyTimeout)
	}
	return resp.GetFile(), err
}
