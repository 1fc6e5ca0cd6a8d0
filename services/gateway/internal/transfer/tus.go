package transfer

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// tusVersion is the version of the protocol of resumable uploads (https://tus.io/protocols/resumable-upload).
// The extensions are those to create, to end and to expire an upload. An upload is the file of its id.
const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,expiration,termination"
	tusBody       = "application/offset+octet-stream"
)

// tusOptions answers which parts of the protocol there are.
func tusOptions(h http.Header) {
	h.Set("Tus-Resumable", tusVersion)
	h.Set("Tus-Version", tusVersion)
	h.Set("Tus-Extension", tusExtensions)
}

// checkTus checks the version of a request.
func checkTus(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Tus-Resumable", tusVersion)
	if got := r.Header.Get("Tus-Resumable"); got != tusVersion {
		w.Header().Set("Tus-Version", tusVersion)
		return problem.PreconditionFailed(problem.BadCondition("Tus-Resumable", fmt.Sprintf("is %q; this server speaks %s", problem.Excerpt(got), tusVersion)))
	}
	_, err := parameters(r.URL.RawQuery)
	return err
}

// createUpload begins an upload.
func (s *Server) createUpload(w http.ResponseWriter, r *http.Request, _ []string) error {
	if err := checkTus(w, r); err != nil {
		return err
	}
	size, err := strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
	if err != nil || size < 0 {
		return problem.BadCondition("Upload-Length", "must be the size of the file, in bytes")
	}
	create := &sessionv1.CreateFileRequest{File: &sessionv1.File{Size: proto.Int64(size)}}
	if create.RequestId, err = idempotencyKey(r); err != nil {
		return err
	}
	if err := readMetadata(create, r.Header.Get("Upload-Metadata")); err != nil {
		return err
	}
	made, err := s.Blobs.CreateFile(r.Context(), create)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/uploads/"+strings.TrimPrefix(made.GetFile().GetName(), "files/"))
	describeUpload(w.Header(), made.GetFile())
	w.WriteHeader(http.StatusCreated)
	return nil
}

// readMetadata reads the header Upload-Metadata: names and values in Base64.
func readMetadata(create *sessionv1.CreateFileRequest, text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil || !utf8.Valid(raw) {
			return problem.BadCondition("Upload-Metadata", "must have names and values in Base64, such as filename cGxhbi5tZA==")
		}
		switch name {
		case "filename", "name":
			create.File.Filename = string(raw)
		case "filetype", "type":
			create.File.MediaType = string(raw)
		case "sha256":
			create.File.Sha256 = string(raw)
		case "ttl":
			ttl, err := time.ParseDuration(string(raw))
			if err != nil {
				return problem.BadCondition("Upload-Metadata", "has a ttl that is not a duration such as 3600s")
			}
			create.Ttl = durationpb.New(ttl)
		}
	}
	return nil
}

// describeUpload sets the headers of an upload.
func describeUpload(h http.Header, f *sessionv1.File) {
	h.Set("Upload-Offset", strconv.FormatInt(f.GetReceived(), 10))
	if f.Size != nil {
		h.Set("Upload-Length", strconv.FormatInt(f.GetSize(), 10))
	}
	if f.GetExpireTime() != nil && f.GetState() == sessionv1.FileState_FILE_STATE_UPLOADING {
		h.Set("Upload-Expires", f.GetExpireTime().AsTime().UTC().Format(http.TimeFormat))
	}
}

// lookUpload answers from where an upload goes on.
func (s *Server) lookUpload(w http.ResponseWriter, r *http.Request, names []string) error {
	if err := checkTus(w, r); err != nil {
		return err
	}
	found, err := s.Blobs.GetFile(r.Context(), &sessionv1.GetFileRequest{Name: "files/" + names[0]})
	if err != nil {
		return err
	}
	describeUpload(w.Header(), found.GetFile())
	w.WriteHeader(http.StatusOK)
	return nil
}

// continueUpload adds the body to an upload. What has arrived is kept, also if the body breaks off.
func (s *Server) continueUpload(w http.ResponseWriter, r *http.Request, names []string) error {
	if err := checkTus(w, r); err != nil {
		return err
	}
	if got := r.Header.Get("Content-Type"); got != tusBody {
		return problem.WithStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, problem.Domain, problem.ReasonUnsupportedMediaType,
			fmt.Sprintf("Content-Type says %s; send %s", problem.Excerpt(got), tusBody)))
	}
	offset, err := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 {
		return problem.BadCondition("Upload-Offset", "must be the offset of the body in the file")
	}
	body := codec.NewPatient(w, r, s.BodyTimeout)
	// The client may go before its bytes are stored.
	f, err := s.appendFile(context.WithoutCancel(r.Context()), &sessionv1.AppendFileStart{Name: "files/" + names[0], Offset: offset}, body, true)
	if err != nil {
		return err
	}
	describeUpload(w.Header(), f)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endUpload deletes an upload, or the file that it has become.
func (s *Server) endUpload(w http.ResponseWriter, r *http.Request, names []string) error {
	if err := checkTus(w, r); err != nil {
		return err
	}
	if _, err := s.Blobs.DeleteFile(r.Context(), &sessionv1.DeleteFileRequest{Name: "files/" + names[0]}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
