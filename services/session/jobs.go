package session

import (
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// handlers are the jobs that this replica does.
func (s *Service) handlers(c Config, d Deps) map[store.JobKind]jobs.Handler {
	return map[store.JobKind]jobs.Handler{}
}
