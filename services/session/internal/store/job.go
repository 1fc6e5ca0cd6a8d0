package store

import "time"

// JobKind is a kind of job.
type JobKind string

// The kinds of jobs.
const (
	JobDelete    JobKind = "delete"   // tell the peers of a session that was deleted; the body is its last epoch, in digits
	JobAfterTurn JobKind = "tend"     // index the messages of a turn that has ended, and fold its deltas
	JobSchedule  JobKind = "schedule" // send a schedule's next message
	JobWebhook   JobKind = "webhook"  // tell a webhook of something
	JobOperation JobKind = "attend"   // wait for the end of an operation, and tell the session's log of it
	JobPush      JobKind = "push"     // push a repository at the end of a turn
	JobRetain    JobKind = "retain"   // delete the sessions that are older than they may be
	// JobSnapshots deletes the sandbox's snapshots of removed checkpoints.
	JobSnapshots JobKind = "snapshots"
	JobExport    JobKind = "export" // copy a workspace to the object store
	JobVacate    JobKind = "vacate" // delete what a node has of a workspace that was moved away
	JobDrain     JobKind = "drain"  // have workspaces leave a node
	// JobExpire ends a call that has waited too long for an answer; its ID is
	// ExpiryID.
	JobExpire JobKind = "expire"
	// JobStorage deletes a user's files on one node.
	JobStorage JobKind = "storage"
	// JobGrants deletes a user's grants in tools; the body is the user.
	JobGrants JobKind = "grants"
	JobFile   JobKind = "file"  // delete the content of a file that was deleted
	JobSkill  JobKind = "skill" // delete the files of a skill that was deleted
	// JobExpireFiles deletes the files whose time has come.
	JobExpireFiles JobKind = "expire_files"
	// JobSubagent ends a subagent's work if the turn that it works for has ended.
	JobSubagent JobKind = "subagent"
	// JobSettle settles a reservation whose owner has not; the body is the reservation's id.
	JobSettle JobKind = "settle"
)

// ExpiryID returns the ID of the JobExpire of a waiting call. The job is removed as
// soon as the call no longer waits (Write.Waited).
func ExpiryID(session, call string) string { return session + "/" + call }

// ExpireJob returns the JobExpire that ends the wait of a session's call after some
// time, by the database's clock.
func ExpireJob(k Key, call string, after time.Duration) Job {
	return Job{Tenant: k.Tenant, Kind: JobExpire, ID: ExpiryID(k.Session, call), Session: k.Session, Body: []byte(call), After: after}
}

// Job is durable work outside of a turn's loop. It is done at least once, so it
// must be idempotent.
type Job struct {
	Tenant string
	Kind   JobKind
	// ID is unique within tenant and kind: putting an existing job changes
	// nothing.
	ID string
	// Session is the id of the session with which the job is deleted; empty:
	// none.
	Session string
	Body    []byte // opaque to the store
	// Due is when the job may be claimed, by the database's clock; zero: After from
	// now on. A claim does not change it.
	Due time.Time
	// After counts only when the job is put or returned and Due is zero.
	After time.Duration
	// Attempt counts the claims, including this one, since the job was put or
	// was returned with another count.
	Attempt int
	// Claim is set by ClaimJobs and unique among all claims: the fence of
	// EndJob.
	Claim string
}

// JobClaim requests jobs.
type JobClaim struct {
	Kinds []JobKind // empty: all
	// ID, with Tenant, claims only this job, even before it is due.
	Tenant, ID string
	Limit      int
	TTL        time.Duration
}
