package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// Deps are the parts of the service that do jobs.
type Deps struct {
	Store      store.Store
	Tools      *remote.Tools
	Sandbox    *remote.Sandbox
	Workspaces *placement.Workspaces
	Submit     *submit.Submitter
	Webhooks   *webhook.Deliverer
	Skills     *skill.Library
	Blobs      *blob.Blobs   // nil: no store of users' files
	FoldAfter  time.Duration // from the end of a turn until its deltas are folded
	Retention  time.Duration // how long idle sessions are kept; 0: forever
	Log        *slog.Logger
}

// kind is one kind of job.
type kind struct {
	name store.JobKind
	do   Handler
	// every is set if there is one job of the kind, which belongs to no tenant and comes again after this time,
	// or when its handler says.
	every time.Duration
	off   bool // this replica does not have what the jobs need, and leaves them to others
}

// table returns all kinds of jobs.
func (d *Deps) table() []kind {
	files, nodes := d.Blobs != nil, d.Workspaces.Nodes.Managed()
	return []kind{
		{name: store.JobDelete, do: d.deleteSession},
		{name: store.JobAfterTurn, do: d.afterTurn},
		{name: store.JobOperation, do: d.awaitOperation},
		{name: store.JobExpire, do: d.expireCall},
		{name: store.JobSubagent, do: d.watchSubagent},
		{name: store.JobSettle, do: d.settle},
		{name: store.JobSchedule, do: d.sendSchedule},
		{name: store.JobPush, do: d.pushRepository},
		{name: store.JobStorage, do: d.deleteStorage},
		{name: store.JobGrants, do: d.deleteGrants},
		{name: store.JobSnapshots, do: d.deleteSnapshots},
		{name: store.JobWebhook, do: d.Webhooks.Deliver},
		{name: store.JobRetain, do: d.deleteIdle, every: time.Hour, off: d.Retention == 0},
		{name: store.JobExpireFiles, do: d.Blobs.Expire, every: time.Minute, off: !files},
		{name: store.JobFile, do: d.Blobs.Delete, off: !files},
		{name: store.JobSkill, do: d.Skills.Drop, off: !files},
		{name: store.JobExport, do: d.Workspaces.Export, off: !nodes},
		{name: store.JobVacate, do: d.Workspaces.Vacate, off: !nodes},
		{name: store.JobDrain, do: d.Workspaces.Drain, off: !nodes},
	}
}

// Handlers returns the handlers of this replica's jobs.
func (d *Deps) Handlers() map[store.JobKind]Handler {
	all := map[store.JobKind]Handler{}
	for _, k := range d.table() {
		if !k.off {
			all[k.name] = k.handle
		}
	}
	return all
}

// Periodic returns the jobs that come again and again, of which there is always one.
func (d *Deps) Periodic() []store.Job {
	var all []store.Job
	for _, k := range d.table() {
		if !k.off && k.every > 0 {
			all = append(all, store.Job{Kind: k.name, ID: string(k.name)})
		}
	}
	return all
}

// handle does a job of the kind.
func (k kind) handle(ctx context.Context, j store.Job) (*store.Job, error) {
	again, err := k.do(ctx, j)
	if err == nil && again == nil && k.every > 0 {
		again = &store.Job{After: k.every}
	}
	return again, err
}
