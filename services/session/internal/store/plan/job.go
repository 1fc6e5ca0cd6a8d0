package plan

import (
	"strconv"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Ended reports whether a turn in this state has ended.
func Ended(s sessionv1.TurnState) bool {
	switch s {
	case sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_PARTIAL,
		sessionv1.TurnState_TURN_STATE_FAILED, sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		return true
	}
	return false
}

// TendJob returns the job that does the follow-up work of an ended turn.
func TendJob(k store.Key, turn string) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobAfterTurn, ID: k.Session + "/" + turn, Session: k.Session}
}

// jobRow returns a job of a commit, which belongs to the session's tenant.
func jobRow(k store.Key, j store.Job, now time.Time) store.Job {
	j.Tenant = k.Tenant
	return JobAt(j, now)
}

// JobAt sets the due time of a job that has none.
func JobAt(j store.Job, now time.Time) store.Job {
	if j.Due.IsZero() {
		j.Due = now.Add(j.After)
	}
	j.Due = Micros(j.Due)
	return j
}

// DeleteJob returns the job that tells the peers that a session was deleted.
// epoch is the session's last one.
func DeleteJob(k store.Key, epoch int64, due time.Time) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobDelete, ID: k.Session, Body: strconv.AppendInt(nil, epoch, 10), Due: Micros(due)}
}
