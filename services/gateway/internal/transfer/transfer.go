// Package transfer serves the requests whose body or answer is a file: exports and imports of sessions, the
// files of their workspaces, and deliveries to triggers, whose bytes are signed. Files are streamed in pieces; the gateway stores no part of them.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

// Server serves requests with files. It is safe for concurrent use.
type Server struct {
	door.Problems
	Client sessionv1.SessionServiceClient
	Files  sessionv1.SessionFileServiceClient
	Blobs  sessionv1.FileServiceClient
	// Triggers takes deliveries.
	Triggers sessionv1.TriggerServiceClient
	// WriteTimeout bounds how long a reader may take nothing, and BodyTimeout how long a sender may send
	// nothing.
	WriteTimeout, BodyTimeout time.Duration
	Log                       *slog.Logger
}

// on serves a request on its route. It cuts off a broken answer, so that it does not look like a whole
// file.
func (s *Server) on(w http.ResponseWriter, r *http.Request, at Route, names []string) error {
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		return err
	}
	err := at.serve(s, w, r, names)
	if err == nil {
		return nil
	}
	err = cmp.Or(auth.Ended(r.Context()), err)
	if problem.HTTPStatus(err) >= http.StatusInternalServerError {
		s.Log.WarnContext(r.Context(), "request failed", "request_id", w.Header().Get(headers.RequestID), "route", r.Pattern, "error", err)
	}
	return err
}

// parameters reads the query. Names may have either of two forms.
func parameters(raw string, names ...string) (map[string]string, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem.BadQuery(err)
	}
	known := map[string]string{}
	for given, all := range values {
		name := given
		if given == "sessionId" {
			name = "session_id"
		}
		_, twice := known[name]
		switch {
		case !slices.Contains(names, name):
			return nil, problem.BadParameter(given, "is not a parameter of this path")
		case len(all) != 1 || twice:
			return nil, problem.BadParameter(given, "is given more than once")
		case !utf8.ValidString(all[0]): // gRPC cannot transport it
			return nil, problem.BadParameter(given, "is not UTF-8")
		}
		known[name] = all[0]
	}
	return known, nil
}

// form is the name of a format in HTTP.
type form struct {
	format             sessionv1.ExportFormat
	mediaType, fileEnd string
}

var forms = map[string]form{
	"":        {sessionv1.ExportFormat_EXPORT_FORMAT_JSONL, "application/jsonl", ".jsonl"},
	"jsonl":   {sessionv1.ExportFormat_EXPORT_FORMAT_JSONL, "application/jsonl", ".jsonl"},
	"archive": {sessionv1.ExportFormat_EXPORT_FORMAT_ARCHIVE, "application/gzip", ".tar.gz"},
}

// send answers with a session's file. It returns an error only before it has
// written anything.
func (s *Server) send(w http.ResponseWriter, r *http.Request, names []string) error {
	session := names[0]
	query, err := parameters(r.URL.RawQuery, "format")
	if err != nil {
		return err
	}
	as, ok := forms[query["format"]]
	if !ok {
		return problem.BadParameter("format", "is neither jsonl nor archive")
	}
	stream, err := s.Client.ExportSession(r.Context(), &sessionv1.ExportSessionRequest{Name: session, Format: as.format})
	if err != nil {
		return err
	}
	piece, err := stream.Recv() // the service refuses before its first piece
	if errors.Is(err, io.EOF) {
		return problem.Internal() // no file is empty
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", as.mediaType)
	w.Header().Set("Content-Disposition", `attachment; filename="`+strings.ReplaceAll(session, "/", "-")+as.fileEnd+`"`)
	return s.stream(w, r, piece.GetData(), func() ([]byte, error) {
		piece, err := stream.Recv()
		return piece.GetData(), err
	})
}

// stream writes the pieces of a file. It panics to cut off an answer that cannot be completed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, piece []byte, next func() ([]byte, error)) error {
	control := http.NewResponseController(w)
	var err error
	for ; err == nil; piece, err = next() {
		// Writers without deadlines, as in tests of handlers alone, ignore it.
		_ = control.SetWriteDeadline(time.Now().Add(s.WriteTimeout))
		if _, err = w.Write(piece); err != nil {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		s.Log.WarnContext(r.Context(), "a download was cut off", "route", r.Pattern, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// pieceBytes is the size of the part of a file in one message.
const pieceBytes = 256 << 10

// keyHeader has the request's idempotency key, in both directions.
const keyHeader = "Idempotency-Key"

// receive makes a session from the body.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, _ []string) error {
	open, err := opened(r)
	if err != nil {
		return err
	}
	resp, err := upload(s, w, r, s.Client.ImportSession,
		&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Open{Open: open}},
		func(b []byte) *sessionv1.ImportSessionRequest {
			return &sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Data{Data: b}}
		})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, resp.GetSession()) // a client that has gone finds the session by its key
}

// upload sends a start and then the body in pieces, and returns the service's answer.
func upload[Q, A any](
	s *Server, w http.ResponseWriter, r *http.Request, open func(context.Context, ...grpc.CallOption) (grpc.ClientStreamingClient[Q, A], error),
	start *Q, piece func([]byte) *Q,
) (*A, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel() // a stream that was not closed must not count as complete
	stream, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if err = stream.Send(start); err == nil {
		err = s.pieces(w, r, func(b []byte) error { return stream.Send(piece(b)) })
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	answer, err := stream.CloseAndRecv() // also returns the cause of a failed Send
	copyKey(w, stream)
	return answer, err
}

// pieces sends the body in pieces. It returns io.EOF if the service has ended the stream; the stream knows
// the cause.
func (s *Server) pieces(w http.ResponseWriter, r *http.Request, send func([]byte) error) error {
	body := codec.NewPatient(w, r, s.BodyTimeout)
	for buf := make([]byte, pieceBytes); ; {
		n, readErr := io.ReadFull(body, buf)
		if readErr != nil && !body.Ended() {
			return broken(readErr, s.BodyTimeout)
		}
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return err
			}
		}
		if body.Ended() {
			return nil
		}
	}
}

// copyKey answers with the idempotency key of an upload.
func copyKey(w http.ResponseWriter, stream grpc.ClientStream) {
	if md, err := stream.Header(); err == nil && len(md.Get(strings.ToLower(keyHeader))) > 0 {
		w.Header().Set(keyHeader, md.Get(strings.ToLower(keyHeader))[0])
	}
}

// answer writes a message as JSON.
func answer(w http.ResponseWriter, status int, m proto.Message) error {
	data, err := codec.Marshaler{}.Marshal(m)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", codec.ContentType)
	w.WriteHeader(status)
	_, _ = w.Write(data)
	return nil
}

// opened reads the parameters beside the file.
func opened(r *http.Request) (*sessionv1.ImportOpen, error) {
	if err := codec.CheckContentType(r.Header, "application/jsonl", codec.NDJSON, "application/gzip", "application/x-gzip", "application/octet-stream"); err != nil {
		return nil, err
	}
	query, err := parameters(r.URL.RawQuery, "session_id", "agent")
	if err != nil {
		return nil, err
	}
	key, err := idempotencyKey(r)
	return &sessionv1.ImportOpen{SessionId: query["session_id"], Agent: query["agent"], RequestId: key}, err
}

// idempotencyKey reads the header.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values(keyHeader)
	switch {
	case len(keys) > 1:
		return "", problem.BadIdempotencyKey("is given more than once")
	case len(keys) == 1 && !utf8.ValidString(keys[0]):
		return "", problem.BadIdempotencyKey("is not UTF-8; use up to 128 printable ASCII characters without spaces")
	}
	return strings.Join(keys, ""), nil
}

func broken(err error, timeout time.Duration) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return problem.BodyTimeout(timeout)
	}
	return apierr.New(codes.InvalidArgument, problem.Domain, problem.ReasonBodyMalformed, "the body broke off before its end")
}
