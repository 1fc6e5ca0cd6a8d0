package session

import (
	"log/slog"

	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/jobs/afterturn"
	"github.com/fairlead/fairlead/services/session/internal/jobs/deletion"
	"github.com/fairlead/fairlead/services/session/internal/jobs/expiry"
	"github.com/fairlead/fairlead/services/session/internal/jobs/operations"
	"github.com/fairlead/fairlead/services/session/internal/jobs/orphans"
	"github.com/fairlead/fairlead/services/session/internal/jobs/push"
	"github.com/fairlead/fairlead/services/session/internal/jobs/settlement"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// handlers returns the handlers of this replica's jobs.
func (s *Service) handlers(c Config, log *slog.Logger) map[store.JobKind]jobs.Handler {
	all := map[store.JobKind]jobs.Handler{
		store.JobDelete:    deletion.Peers(s.tools, s.work),
		store.JobAfterTurn: afterturn.New(s.store, c.FoldAfter).Handle,
		store.JobOperation: operations.Handler(s.tools, s.store),
		store.JobExpire:    expiry.Handler(s.store),
		store.JobSubagent:  orphans.Handler(s.store),
		store.JobSettle:    settlement.Handler(s.store),
		store.JobPush:      push.Handler(s.sandbox, s.store, log),
		store.JobWebhook:   s.webhooks.Deliver,
		store.JobStorage:   deletion.Storage(s.sandbox, func(n string) bool { return s.nodes.Managed() && s.nodes.Known(n) }),
		store.JobGrants:    deletion.Grants(s.tools),
		store.JobSnapshots: deletion.Snapshots(s.store, s.sandbox),
	}
	if c.Retention > 0 {
		all[store.JobRetain] = deletion.Retain(s.store, c.Retention, log)
	}
	if s.blobs != nil {
		all[store.JobSkill] = s.directory.Skills.Drop
		all[store.JobFile], all[store.JobExpireFiles] = s.blobs.Delete, s.blobs.Expire
	}
	if s.nodes.Managed() {
		all[store.JobExport], all[store.JobVacate], all[store.JobDrain] = s.work.Export, s.work.Vacate, s.work.Drain
	}
	return all
}
