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

// Converse joins a session, with lines of JSON in both directions at the same time. A line that cannot be
// parsed ends the conversation with an error that names it; inputs that were accepted before stay.
func (s *Server) Converse(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	release, err := s.streams.Acquire(limit.Of(r))
	if err != nil {
		problem.Write(w, err)
		return
	}
	defer release()
	// The rest of the body may still arrive at the end, so no other request can follow it.
	w.Header().Set("Connection", "close")
	// HTTP/1 servers otherwise read the whole body before they write; HTTP/2 does not need this.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.refuse(r.Context(), w, nil, err)
		return
	}
	// A conversation may be silent for any time.
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
		// The stream is over: the deadline stops the goroutine below at once.
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
		s.refuse(ctx, w, src, err)
		return
	}
	defer src.close()
	o := &output{Output: NewOutput(w, s.cfg.WriteTimeout), enc: ndjson{}}
	if err := s.begin(o, src); err != nil {
		s.cut(ctx, src.rpc, err)
		return
	}
	s.pump(ctx, o, src)
}

// inputError ends a conversation because of its client's input.
type inputError struct{ err error }

// Error implements error.
func (b *inputError) Error() string { return b.err.Error() }

// conversing is the stream of a conversation.
type conversing = grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse]

// forward sends the lines of body to the service until either ends. Its error is for the client; the
// service's errors come with its answers.
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
			_ = st.CloseSend() // its error, too, comes with the answers
			return nil
		case errors.Is(err, errLongLine):
			return problem.BodyTooLarge(s.cfg.MaxBody)
		case err != nil:
			return problem.BodyMalformed("", "it broke off")
		}
	}
}

var errLongLine = errors.New("stream: line too long")

// readLine returns the next line, which may be the last one without a line feed.
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
