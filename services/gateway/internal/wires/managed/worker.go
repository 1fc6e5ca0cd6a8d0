package managed

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// workScope begins the scope of an environment key: the id of the environment follows.
const workScope = "work.write:"

// ReasonWorkerKey is the reason of a request that an environment key may not make.
const ReasonWorkerKey = "WORKER_KEY"

// authorize finds the caller, and what it may do here. The key of an environment serves the wire's calls of a worker
// alone, for the sessions of its environment; for those the request goes on with the scopes that they need.
func (c *request) authorize(rt route) error {
	var ok bool
	if c.caller, ok = principal.From(c.R.Context()); !ok {
		c.caller = principal.Default()
	}
	for _, scope := range c.caller.Scopes {
		if environment, ok := strings.CutPrefix(scope, workScope); ok {
			c.queues = append(c.queues, environment)
		}
	}
	ofQueue := strings.Contains(rt.Template, "/work")
	switch {
	case len(c.queues) == 0 && ofQueue && len(c.caller.Scopes) > 0:
		return notWorker("the key is limited to other scopes; make one with the scope " + workScope + strings.TrimPrefix(c.ID[0], environmentPrefix))
	case len(c.queues) == 0:
		return nil
	case ofQueue && !c.mayServe(wire.LastPart(environmentName(c.ID[0]))):
		return notWorker("the key is of another environment")
	case !ofQueue && !slices.Contains(workers, rt.Method+" "+rt.Template):
		return notWorker("the key of an environment serves its work queue and the events of its sessions alone; use an API key")
	}
	p := c.caller
	p.Scopes = []string{"environments.read", "sessions.read", "sessions.write"}
	c.R = c.R.WithContext(principal.With(c.R.Context(), p))
	return nil
}

// mayServe reports whether the caller may serve an environment's sessions: only environment keys are limited to some.
func (c *request) mayServe(environment string) bool {
	if len(c.queues) == 0 {
		return true
	}
	for _, q := range c.queues {
		if q == environment {
			return true
		}
	}
	return false
}

func notWorker(what string) error {
	return apierr.New(codes.PermissionDenied, problem.Domain, ReasonWorkerKey, what)
}

// service bounds a call of the internal services, which the gateway makes for the caller's tenant.
func (s *base) service(c *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(principal.With(c.R.Context(), principal.Service(c.caller.Tenant, c.caller.User)), s.wire.Timeout)
}
