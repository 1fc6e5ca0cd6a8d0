package peer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// ModelProxyServer implements ModelProxyService.
type ModelProxyServer struct {
	sessionv1.UnimplementedModelProxyServiceServer
	*Config
}

// CallModel answers a request of a model API.
func (x *ModelProxyServer) CallModel(r *sessionv1.CallModelRequest, stream grpc.ServerStreamingServer[sessionv1.CallModelResponse]) error {
	ctx := stream.Context()
	if route, ok := modelapi.Match(r.Path); !ok || route.Session != r.Session {
		const why = "is not a path of a model API, or names another session"
		return apierr.New(codes.InvalidArgument, refusal.Domain, apierr.ReasonInvalidRequest, "path: "+why, apierr.Field("path", why))
	}
	payer, err := x.payer(ctx, r.Session)
	if err != nil {
		return err
	}
	request := (&http.Request{
		Method: r.Method, URL: &url.URL{Path: r.Path, RawQuery: r.Query}, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(r.Body)), ContentLength: int64(len(r.Body)),
	}).WithContext(ctx)
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	return (&answerPieces{stream: stream, header: http.Header{}}).serve(x.Proxy.Handler(payer), request)
}

// payer returns who pays for the caller's requests.
func (x *ModelProxyServer) payer(ctx context.Context, session string) (modelproxy.Payer, error) {
	k := request.Key(ctx, session)
	p := modelproxy.Payer{Parties: budget.Parties{Tenant: k.Tenant, User: request.User(ctx), Session: k.Session}}
	if session == "" {
		return p, nil
	}
	s, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return p, refusal.Store(err, refusal.Subject{Session: session})
	}
	p.SessionBudget = s.Budget
	return p, nil
}

// answerPieces sends an HTTP answer as pieces of a stream. It is an http.ResponseWriter.
type answerPieces struct {
	stream grpc.ServerStreamingServer[sessionv1.CallModelResponse]
	header http.Header
	begun  bool
	err    error
}

// serve lets a handler answer. An answer that is cut off is an error of the stream.
func (p *answerPieces) serve(h http.Handler, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(v)
			}
			err = refusal.Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_MODEL_UNAVAILABLE, "The model's answer broke off before it was complete.")
		}
	}()
	h.ServeHTTP(p, r)
	if !p.begun {
		p.WriteHeader(http.StatusOK)
	}
	return p.err
}

// Header implements http.ResponseWriter.
func (p *answerPieces) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *answerPieces) WriteHeader(status int) {
	if p.begun {
		return
	}
	p.begun = true
	head := &sessionv1.ModelAnswerHead{Status: int32(status), Headers: map[string]string{}}
	for name := range p.header {
		head.Headers[name] = p.header.Get(name)
	}
	p.err = p.stream.Send(&sessionv1.CallModelResponse{Kind: &sessionv1.CallModelResponse_Head{Head: head}})
}

// Write implements http.ResponseWriter.
func (p *answerPieces) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.err != nil {
		return 0, p.err
	}
	// The caller uses its buffer again, and gRPC may read a message until later.
	p.err = p.stream.Send(&sessionv1.CallModelResponse{Kind: &sessionv1.CallModelResponse_Data{Data: bytes.Clone(b)}})
	return len(b), p.err
}

// Flush implements http.Flusher: every piece is sent at once.
func (*answerPieces) Flush() {}
