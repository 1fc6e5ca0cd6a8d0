package peer

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// WorkServer implements WorkService.
type WorkServer struct {
	sessionv1.UnimplementedWorkServiceServer
	*Config
}

const (
	// startTime is how long a worker has from the acknowledgement to its first heartbeat.
	startTime = time.Minute
	// The bounds of a lease.
	minLease = time.Second
	maxLease = 10 * time.Minute
)

func queueOf(ctx context.Context, q *sessionv1.WorkQueue) store.WorkQueue {
	return store.WorkQueue{Tenant: principal.Tenant(ctx), Environment: q.GetEnvironment(), User: q.GetUser()}
}

func workProto(w *store.Work) *sessionv1.Work {
	at := func(t *time.Time) *timestamppb.Timestamp {
		if t == nil {
			return nil
		}
		return timestamppb.New(*t)
	}
	return &sessionv1.Work{
		Session: "sessions/" + w.Session, Number: w.Number, State: string(w.State), Worker: w.Worker, MetadataJson: string(w.Metadata), CreateTime: timestamppb.New(w.CreateTime),
		AcknowledgeTime: at(w.AcknowledgeTime), StartTime: at(w.StartTime), HeartbeatTime: at(w.HeartbeatTime), Ttl: durationpb.New(w.TTL),
		StopRequestTime: at(w.StopRequestTime), StopTime: at(w.StopTime),
	}
}

// PollWork gives out a work item.
func (x *WorkServer) PollWork(ctx context.Context, r *sessionv1.PollWorkRequest) (*sessionv1.PollWorkResponse, error) {
	w, err := x.Store.PollWork(ctx, store.WorkPoll{WorkQueue: queueOf(ctx, r.Queue), Worker: r.Worker, Reclaim: r.Reclaim.AsDuration()})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &sessionv1.PollWorkResponse{}, nil
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{})
	}
	return &sessionv1.PollWorkResponse{Work: workProto(w)}, nil
}

// errRefused undoes a change that is not made.
var errRefused = errors.New("refused")

// ChangeWork changes a work item.
func (x *WorkServer) ChangeWork(ctx context.Context, r *sessionv1.ChangeWorkRequest) (*sessionv1.ChangeWorkResponse, error) {
	q, session := queueOf(ctx, r.Queue), strings.TrimPrefix(r.Session, "sessions/")
	out := &sessionv1.ChangeWorkResponse{}
	var err error
	var w *store.Work
	if r.Change == nil {
		w, err = x.Store.GetWork(ctx, q, session, r.Number)
	} else {
		w, err = x.Store.ChangeWork(ctx, q, session, r.Number, func(w *store.Work, now time.Time) error {
			if changeWork(w, r, now) {
				return nil
			}
			out.Work = workProto(w)
			return errRefused
		})
	}
	switch {
	case errors.Is(err, errRefused):
		out.Refused = true
		return out, nil
	case errors.Is(err, store.ErrNotFound):
		return &sessionv1.ChangeWorkResponse{}, nil
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{})
	}
	out.Work = workProto(w)
	return out, nil
}

// changeWork makes a change, and reports whether it may.
func changeWork(w *store.Work, r *sessionv1.ChangeWorkRequest, now time.Time) bool {
	switch k := r.Change.(type) {
	case *sessionv1.ChangeWorkRequest_Acknowledge_:
		if w.State == store.WorkQueued {
			end := now.Add(startTime)
			w.State, w.AcknowledgeTime, w.LeaseEnd = store.WorkStarting, &now, &end
		}
		return w.State != store.WorkStopped
	case *sessionv1.ChangeWorkRequest_Heartbeat_:
		return heartbeat(w, k.Heartbeat, now)
	case *sessionv1.ChangeWorkRequest_Stop_:
		if w.State == store.WorkStopped {
			return false
		}
		if w.StopRequestTime == nil {
			w.StopRequestTime = &now
		}
		if w.State = store.WorkStopping; k.Stop.Force || w.AcknowledgeTime == nil {
			w.State, w.StopTime, w.LeaseEnd = store.WorkStopped, &now, nil
		}
	case *sessionv1.ChangeWorkRequest_MetadataJson:
		w.Metadata = []byte(k.MetadataJson)
	}
	return true
}

// heartbeat extends a lease. The last heartbeat names the holder: a worker that has lost the item knows an older one.
func heartbeat(w *store.Work, h *sessionv1.ChangeWorkRequest_Heartbeat, now time.Time) bool {
	switch w.State {
	case store.WorkStopping, store.WorkStopped:
		return true // the answer says so, and nothing is extended
	case store.WorkQueued:
		return false
	}
	if (w.HeartbeatTime == nil) != (h.Expected == nil) || h.Expected != nil && !h.Expected.AsTime().Equal(*w.HeartbeatTime) {
		return false
	}
	if w.HeartbeatTime != nil && !now.After(*w.HeartbeatTime) {
		now = w.HeartbeatTime.Add(time.Microsecond) // two heartbeats have two times
	}
	w.State, w.TTL = store.WorkActive, min(max(h.Ttl.AsDuration(), minLease), maxLease)
	if w.StartTime == nil {
		w.StartTime = &now
	}
	end := now.Add(w.TTL)
	w.HeartbeatTime, w.LeaseEnd = &now, &end
	return true
}

// ListWork lists work items.
func (x *WorkServer) ListWork(ctx context.Context, r *sessionv1.ListWorkRequest) (*sessionv1.ListWorkResponse, error) {
	all, err := x.Store.ListWork(ctx, queueOf(ctx, r.Queue), r.After, page.Size(r.PageSize, 50, 1000))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	out := &sessionv1.ListWorkResponse{}
	for _, w := range all {
		out.Work = append(out.Work, workProto(w))
	}
	return out, nil
}

// GetWorkStats counts a queue.
func (x *WorkServer) GetWorkStats(ctx context.Context, r *sessionv1.GetWorkStatsRequest) (*sessionv1.GetWorkStatsResponse, error) {
	n, err := x.Store.CountWork(ctx, queueOf(ctx, r.Queue))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	out := &sessionv1.GetWorkStatsResponse{Depth: int64(n.Depth), Pending: int64(n.Pending)}
	if n.Oldest != nil {
		out.OldestTime = timestamppb.New(*n.Oldest)
	}
	return out, nil
}
