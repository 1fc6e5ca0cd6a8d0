package tables

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

type attachments struct{ db DB }

// PutAttachments implements store.Attachments. It also deletes what does not count any more.
func (t attachments) PutAttachments(ctx context.Context, replica string, all []store.Attachment, ttl time.Duration) error {
	return t.db.Write(ctx, "write which runtimes are attached", func(tx Tx) ([]store.Wake, error) {
		if _, err := tx.Exec(ctx, "delete from attachments where replica = $1 or until <= clock_timestamp()", replica); err != nil {
			return nil, err
		}
		for _, a := range all {
			if _, err := tx.Exec(ctx, `insert into attachments (tenant, runtime, replica, processes, places, turns, until)
				values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval)`,
				a.Tenant, a.Runtime, replica, a.Processes, a.Places, a.Turns, ttl); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// ListAttachments implements store.Attachments.
func (t attachments) ListAttachments(ctx context.Context, tenant, runtime string) ([]store.Attachment, error) {
	all, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (a store.Attachment, err error) {
		return a, r.Scan(&a.Tenant, &a.Runtime, &a.Replica, &a.Processes, &a.Places, &a.Turns)
	}, `select tenant, runtime, replica, processes, places, turns from attachments
		where tenant = $1 and ($2 = '' or runtime = $2) and until > clock_timestamp() order by runtime, replica`, tenant, runtime)
	if err != nil {
		return nil, t.db.Fail("list which runtimes are attached", err)
	}
	return all, nil
}
