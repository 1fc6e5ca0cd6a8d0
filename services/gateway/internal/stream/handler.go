package stream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// WantsEvents reports whether a request for a page of events asks for the stream
// instead.
func WantsEvents(r *http.Request) bool {
	return codec.Prefer(r.Header.Values("Accept"), codec.ContentType, codec.SSE, codec.ContentType) == codec.SSE
}

// encoderFor returns the format of a stream: server-sent events unless the request prefers JSON lines by
// name. application/json alone does not count, because many clients send it with every request.
func (s *Server) encoderFor(r *http.Request) encoder {
	if codec.Prefer(r.Header.Values("Accept"), codec.SSE, codec.SSE, codec.NDJSON) == codec.SSE {
		return sse{reconnect: s.cfg.Reconnect}
	}
	return ndjson{}
}

const streamEvents = sessionv1.SessionService_StreamEvents_FullMethodName

// Events follows a session: StreamEvents.
func (s *Server) Events(w http.ResponseWriter, r *http.Request, params map[string]string) {
	after, _, err := codec.ResumePoint(r.Header, r.URL.Query())
	if err != nil {
		problem.Write(w, err)
		return
	}
	s.serve(w, r, func(ctx context.Context, cancel context.CancelCauseFunc) (*source, error) {
		st, err := s.client.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: params["parent"], AfterSeq: after})
		if err != nil {
			return nil, err
		}
		src, err := open(ctx, cancel, streamEvents, s.cfg.OpenTimeout, st)
		src.session, src.after, src.outer = params["parent"], after, r.Context()
		return src, err
	})
}

// RunTurn sends a message and follows its turn. With the same idempotency key it re-attaches to the turn.
func (s *Server) RunTurn(w http.ResponseWriter, r *http.Request, params map[string]string) {
	req := &sessionv1.RunTurnRequest{}
	after, ok, err := s.read(w, r, params, req)
	if err != nil {
		problem.Write(w, err)
		return
	}
	req.Parent = params["parent"]
	if ok {
		req.AfterSeq = after
	}
	s.serve(w, r, func(ctx context.Context, cancel context.CancelCauseFunc) (*source, error) {
		st, err := s.client.RunTurn(ctx, req)
		if err != nil {
			return nil, err
		}
		return open(ctx, cancel, sessionv1.SessionService_RunTurn_FullMethodName, s.cfg.OpenTimeout, st)
	})
}

// CallTool makes a call without the model and follows it. With the same idempotency key it re-attaches to the
// call.
func (s *Server) CallTool(w http.ResponseWriter, r *http.Request, params map[string]string) {
	req := &sessionv1.CallToolRequest{}
	after, ok, err := s.read(w, r, params, req)
	if err != nil {
		problem.Write(w, err)
		return
	}
	req.Parent = params["parent"]
	if ok {
		req.AfterSeq = after
	}
	s.serve(w, r, func(ctx context.Context, cancel context.CancelCauseFunc) (*source, error) {
		st, err := s.tools.CallTool(ctx, req)
		if err != nil {
			return nil, err
		}
		return open(ctx, cancel, sessionv1.SessionToolService_CallTool_FullMethodName, s.cfg.OpenTimeout, st)
	})
}

// read reads the body of a request that starts a stream, and returns the resume point of its header or query, if
// it has one.
func (s *Server) read(w http.ResponseWriter, r *http.Request, params map[string]string, req proto.Message) (after int64, ok bool, err error) {
	if after, ok, err = codec.ResumePoint(r.Header, r.URL.Query()); err != nil {
		return 0, false, err
	}
	body := codec.NewBody(w, r, s.cfg.MaxBody, s.cfg.BodyTimeout)
	body.Params = params
	if err := body.Decode(req); err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	return after, ok, nil
}

// opener starts a stream of the service and waits until the service has
// accepted it.
type opener func(ctx context.Context, cancel context.CancelCauseFunc) (*source, error)

// serve opens a stream and pumps it, within the limits.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, start opener) {
	release, err := s.streams.Acquire(limit.Of(r))
	if err != nil {
		problem.Write(w, err)
		return
	}
	defer idle.Until(r.Context(), release)()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	src, err := start(ctx, cancel)
	if err != nil {
		s.refuse(ctx, w, src, err)
		return
	}
	defer src.close()
	o := &output{Output: NewOutput(w, s.cfg.WriteTimeout), enc: s.encoderFor(r)}
	if err := s.begin(o, src); err != nil {
		s.cut(ctx, src.rpc, err)
		return
	}
	s.pump(ctx, o, src)
}

// refuse answers a request whose stream was not opened. Without a source, the service was not asked.
func (s *Server) refuse(ctx context.Context, w http.ResponseWriter, src *source, err error) {
	err = cmp.Or(endOf(ctx), err)
	if key := src.key(); key != "" {
		w.Header().Set(keyHeader, key)
	}
	if problem.HTTPStatus(err) >= http.StatusInternalServerError {
		s.log.WarnContext(ctx, "stream refused by the service", "request_id", w.Header().Get(headers.RequestID), "error", err)
	}
	problem.Write(w, err)
}
