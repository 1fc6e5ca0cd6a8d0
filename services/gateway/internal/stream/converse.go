package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// Converse joins a session, lines of JSON both ways at the same time. A line that cannot be read ends the conversation
// with an error that says which; what was accepted before it stays.
func (s *Server) Converse(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	release, err := s.streams.Acquire(limit.Client(r))
	if err != nil {
		problem.Write(w, err)
		return
	}
	defer release()
	// What is left of the body may still be under way at the end, so no other request can follow it.
	w.Header().Set("Connection", "close")
	// HTTP/1 servers otherwise read all of a body before they write; HTTP/2 needs and knows nothing of it.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.refuse(r.Context(), w, nil, err)
		return
	}
	// A conversation may be silent for as long as it likes.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	st, err := s.client.Converse(ctx)
	if err != nil {
		s.refuse(ctx, w, nil, err)
		return
	}
	var inputs sync.WaitGroup
	defer func() {
		// The stream is over, so the goroutine below reads in vain: it stops at once.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		inputs.Wait()
	}()
	inputs.Go(func() {
		if err := s.forward(r.Body, st); err != nil {
			cancel(&inputError{err})
		}
	})
	// The service accepts the conversation when it has read its first input.
	src, err := open(ctx, cancel, sessionv1.SessionService_Converse_FullMethodName, s.cfg.OpenTimeout, st)
	if err != nil {
		if bad := (*inputError)(nil); errors.As(context.Cause(ctx), &bad) {
			err = bad.err
		}
		s.refuse(ctx, w, src, err)
		return
	}
	defer src.close()
	o := &output{w: w, control: http.NewResponseController(w), enc: ndjson{}, timeout: s.cfg.WriteTimeout}
	if err := s.begin(o, src); err != nil {
		s.cut(ctx, src, err)
		return
	}
	s.pump(ctx, o, src)
}

// inputError ends a conversation because of what its client sent.
type inputError struct{ err error }

// Error implements error.
func (b *inputError) Error() string { return b.err.Error() }

// conversing is the stream of a conversation.
type conversing = grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse]

// forward sends the lines of body to the service until either ends. Its error is one for the client; the service's own
// comes with its answers.
func (s *Server) forward(body io.Reader, st conversing) error {
	lines := bufio.NewReader(body)
	for n := 1; ; n++ {
		line, err := readLine(lines, s.cfg.MaxBody)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			req := &sessionv1.ConverseRequest{}
			if err := codec.UnmarshalInput(n, line, req); err != nil {
				return err
			}
			if err := st.Send(req); err != nil {
				return nil //nolint:nilerr // the answers tell what became of the stream
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = st.CloseSend() // likewise
			return nil
		case errors.Is(err, errLongLine):
			return problem.BodyTooLarge(s.cfg.MaxBody)
		case err != nil:
			return problem.BodyMalformed("", "it broke off")
		}
	}
}

var errLongLine = errors.New("stream: line too long")

// readLine returns the next line, which may be the last and end without a line feed.
func readLine(r *bufio.Reader, most int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > most {
			return nil, errLongLine
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
