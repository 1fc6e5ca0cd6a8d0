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
	control := http.NewResponseController(w)
	// HTTP/1 servers otherwise read all of a body before they write; HTTP/2 needs and knows nothing of it.
	if err := control.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.refuse(r.Context(), w, err)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	var st grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse]
	src, header, err := s.open(ctx, cancel, func(ctx context.Context) (_ *source, err error) {
		st, err = s.client.Converse(ctx)
		return follow(sessionv1.SessionService_Converse_FullMethodName, st), err
	})
	if err != nil {
		s.refuse(ctx, w, err)
		return
	}
	o := &output{w: w, control: control, enc: ndjson{}, timeout: s.cfg.WriteTimeout}
	w.Header().Set("Connection", "close") // what is left of the body may still be under way
	if err := s.begin(o, header); err != nil {
		s.cut(ctx, src, err)
		return
	}
	broken := make(chan error, 1)
	var inputs sync.WaitGroup
	inputs.Go(func() {
		if err := s.forward(r.Body, st); err != nil {
			broken <- err
		}
	})
	s.pump(ctx, cancel, o, src, broken)
	// The stream is over: the goroutine above reads in vain, and stops at once.
	_ = control.SetReadDeadline(time.Unix(1, 0))
	inputs.Wait()
}

// forward sends the lines of body to the service until either ends. Its error is one for the client; the service's own
// comes with its answers.
func (s *Server) forward(body io.Reader, st grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse]) error {
	lines := bufio.NewReader(body)
	for n := 1; ; n++ {
		line, err := readLine(lines, s.cfg.MaxBody)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			req := &sessionv1.ConverseRequest{}
			if err := codec.UnmarshalInput(n, line, req); err != nil {
				return err
			}
			if st.Send(req) != nil {
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = st.CloseSend() // the answers tell what became of the stream
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
