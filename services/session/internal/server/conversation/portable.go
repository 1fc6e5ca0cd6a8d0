package conversation

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/reply"
)

// ForkSession makes a session with the conversation of another one.
func (s *SessionServer) ForkSession(ctx context.Context, r *sessionv1.ForkSessionRequest) (*sessionv1.ForkSessionResponse, error) {
	session, err := s.portable.Fork(ctx, r)
	return &sessionv1.ForkSessionResponse{Session: session}, err
}

// ExportSession streams a session without active or queued turns.
func (s *SessionServer) ExportSession(
	r *sessionv1.ExportSessionRequest, stream grpc.ServerStreamingServer[sessionv1.ExportSessionResponse],
) error {
	archive := r.Format == sessionv1.ExportFormat_EXPORT_FORMAT_ARCHIVE
	return s.portable.Export(stream.Context(), r.Name, archive, func() (io.Writer, error) {
		to := reply.Pieces(func(b []byte) error { return stream.Send(&sessionv1.ExportSessionResponse{Data: b}) })
		return to, stream.SendHeader(nil)
	})
}

// ImportSession makes a session from an export.
func (s *SessionServer) ImportSession(stream grpc.ClientStreamingServer[sessionv1.ImportSessionRequest, sessionv1.ImportSessionResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetOpen() == nil {
		return refusal.Input("kind", "The first request has to be open.")
	}
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open.RequestId, err = reply.NameUpload(stream, open.RequestId); err != nil {
		return err
	}
	session, err := s.portable.Import(stream.Context(), open, func() ([]byte, error) {
		m, err := stream.Recv()
		if err == nil && m.GetOpen() != nil {
			err = refusal.Input("kind", "Open is the first request, and only the first.")
		}
		return m.GetData(), err
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&sessionv1.ImportSessionResponse{Session: session})
}
