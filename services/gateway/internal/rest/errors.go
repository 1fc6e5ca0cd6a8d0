package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// writeError answers with an error of grpc-gateway or of a service.
func (s *Server) writeError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	err = cmp.Or(auth.Ended(ctx), err)
	if b, ok := r.Body.(*codec.Body); ok && b.Err() != nil {
		err = b.Err() // err has only its text
	}
	if md, ok := runtime.ServerMetadataFromContext(ctx); ok {
		if key := md.HeaderMD.Get(rpc.IdempotencyKey); len(key) > 0 {
			w.Header().Set(keyHeader, key[0])
		}
	}
	if problem.HTTPStatus(err) >= http.StatusInternalServerError {
		s.log.WarnContext(ctx, "request failed", "request_id", w.Header().Get(headers.RequestID), "route", routeOf(ctx).Template, "error", err)
	}
	problem.Write(w, err)
}
