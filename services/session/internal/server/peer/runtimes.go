package peer

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/attached"
)

// RuntimeServer implements RuntimeService.
type RuntimeServer struct {
	sessionv1.UnimplementedRuntimeServiceServer
	*Config
}

// Attach makes the caller a runtime of its tenant.
func (x *RuntimeServer) Attach(stream attached.Stream) error {
	return x.Attached.Serve(stream.Context(), principal.Tenant(stream.Context()), stream)
}
