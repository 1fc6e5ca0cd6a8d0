package session

import (
	"context"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/jobs/afterturn"
	"github.com/fairlead/fairlead/services/session/internal/jobs/deletion"
	"github.com/fairlead/fairlead/services/session/internal/jobs/expiry"
	"github.com/fairlead/fairlead/services/session/internal/jobs/operations"
	"github.com/fairlead/fairlead/services/session/internal/jobs/push"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// handlers returns the handlers of this replica's jobs.
func (s *Service) handlers(c Config, d Deps) map[store.JobKind]jobs.Handler {
	all := map[store.JobKind]jobs.Handler{
		store.JobDelete:    deletion.Peers(toolsv1.NewCallServiceClient(d.Tools), s.workspaces(d)),
		store.JobAfterTurn: afterturn.New(s.store, c.FoldAfter).Handle,
		store.JobSchedule: func(ctx context.Context, j store.Job) (*store.Job, error) {
			return s.server.ScheduleService().Fire(ctx, j)
		},
		store.JobOperation: operations.Handler(toolsv1.NewOperationServiceClient(d.Tools), s.store),
		store.JobExpire:    expiry.Handler(s.store),
		store.JobPush:      push.Handler(sandboxv1.NewRepositoryServiceClient(d.Sandbox), s.store, d.Log),
		store.JobWebhook:   s.webhooks.Deliver,
		store.JobStorage:   deletion.Storage(sandboxv1.NewWorkspaceServiceClient(d.Sandbox), func(n string) bool { return s.nodes.Managed() && s.nodes.Known(n) }),
		store.JobSnapshots: deletion.Snapshots(s.store, sandboxv1.NewSnapshotServiceClient(d.Sandbox)),
	}
	if c.Retention > 0 {
		all[store.JobRetain] = deletion.Retain(s.store, c.Retention, d.Log)
	}
	if s.nodes.Managed() {
		all[store.JobExport], all[store.JobVacate], all[store.JobDrain] = s.work.Export, s.work.Vacate, s.work.Drain
	}
	return all
}
