package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type files struct{ db DB }

const fileColumns = "tenant, user_id, file, filename, media_type, size, received, promised, hash, ready, ttl, create_time, expire_time"

func scanFile(r sqldb.Row) (*plan.File, error) {
	f := &plan.File{}
	return f, r.Scan(&f.Tenant, &f.User, &f.ID, &f.Filename, &f.MediaType, &f.Size, &f.Received, &f.Promised, &f.Hash, &f.Ready, &f.TTL, &f.CreateTime, &f.Expire)
}

// present is the condition of files whose time has not come.
const present = "(expire_time is null or expire_time > clock_timestamp())"

// CreateFile implements store.Files.
func (t files) CreateFile(ctx context.Context, n store.NewFile) (store.Answer, error) {
	return once(ctx, t.db, "create file", request{n.Request, n.Tenant, "", n.ID}, nil, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		f := plan.ForFile(n, now)
		whole := f.Counted()
		if f.Size != nil {
			whole = *f.Size
		}
		if err := charge(ctx, tx, f.Owner, f.Counted(), whole, n.Limits); err != nil {
			return nil, err
		}
		if err := checkUploads(ctx, tx, f.Owner, n.Limits.Uploads); err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, `
			insert into files (tenant, user_id, file, filename, media_type, size, promised, hash, ttl, create_time, expire_time)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			f.Tenant, f.User, f.ID, f.Filename, f.MediaType, f.Size, f.Promised, f.Hash, f.TTL, f.CreateTime, f.Expire)
		return nil, err
	})
}

// checkUploads returns store.ErrUploads if a user has as many uploads that have not ended as a user may have. The
// caller holds the lock of the user's usage.
func checkUploads(ctx context.Context, tx Tx, o store.Owner, most int64) error {
	if most == 0 {
		return nil
	}
	var open int64
	err := tx.QueryRow(ctx, "select count(*) from files where tenant = $1 and user_id = $2 and not ready and "+present, o.Tenant, o.User).Scan(&open)
	if err == nil && open >= most {
		err = store.ErrUploads
	}
	return err
}

// charge adds bytes to what the files of the tenant and of the user have, in this order. It returns store.ErrFull
// if room more bytes would be more than they may have.
func charge(ctx context.Context, tx Tx, o store.Owner, bytes, room int64, limits store.FileLimits) error {
	for _, c := range []struct {
		user  string
		limit int64
	}{{"", limits.Tenant}, {o.User, limits.User}} {
		if _, err := tx.Exec(ctx, "insert into file_usage (tenant, user_id, bytes) values ($1, $2, 0) on conflict do nothing", o.Tenant, c.user); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `
			update file_usage set bytes = bytes + $3::bigint
			where tenant = $1 and user_id = $2 and ($5::bigint <= 0 or $4::bigint = 0 or bytes + $5::bigint <= $4::bigint)`,
			o.Tenant, c.user, bytes, c.limit, room)
		if err == nil && n == 0 {
			err = store.ErrFull
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// GetFile implements store.Files.
func (t files) GetFile(ctx context.Context, tenant, id string) (*store.FileRow, error) {
	f, err := scanFile(t.db.Reader().QueryRow(ctx, "select "+fileColumns+" from files where tenant = $1 and file = $2 and "+present, tenant, id))
	if err != nil {
		return nil, t.db.Fail("get file", err)
	}
	return f.Row(), nil
}

// ListFiles implements store.Files.
func (t files) ListFiles(ctx context.Context, p store.FilePage) ([]*sessionv1.File, error) {
	q := filter("select "+fileColumns+" from files where tenant = $1 and "+present, p.Tenant)
	if p.User != "" {
		q.and("user_id = ?", p.User)
	}
	if p.AfterID != "" {
		q.and("(create_time, file) < (?, ?)", p.AfterTime, p.AfterID)
	}
	statement := q.ordered("create_time desc, file desc", p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (*sessionv1.File, error) {
		f, err := scanFile(r)
		return f.Proto(), err
	}, statement, q.args...)
	return out, t.db.Fail("list files", err)
}

// FileParts implements store.Files.
func (t files) FileParts(ctx context.Context, tenant, id string, offset int64) ([]store.FilePart, error) {
	out, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (p store.FilePart, err error) {
		return p, r.Scan(&p.Offset, &p.Size, &p.Object)
	}, "select place, size, object from file_parts where tenant = $1 and file = $2 and place + size > $3 order by place", tenant, id, offset)
	return out, t.db.Fail("list the parts of a file", err)
}

// uploading reads a file that is not ready and has received so many bytes, and locks it.
func uploading(ctx context.Context, tx Tx, tenant, id string, received int64) (*plan.File, error) {
	f, err := scanFile(tx.QueryRow(ctx, "select "+fileColumns+" from files where tenant = $1 and file = $2"+forChange, tenant, id))
	switch {
	case err != nil:
		return nil, err
	case f.Ready:
		return nil, store.ErrReady
	case f.Received != received:
		return nil, store.ErrOffset
	}
	return f, nil
}

// AppendPart implements store.Files.
func (t files) AppendPart(ctx context.Context, p store.AppendPart) error {
	return t.db.Write(ctx, "append to a file", func(tx Tx) ([]store.Wake, error) {
		f, err := uploading(ctx, tx, p.Tenant, p.ID, p.Offset)
		if err != nil {
			return nil, err
		}
		if more := f.CountedAt(p.Offset+p.Size) - f.Counted(); more != 0 {
			if err := charge(ctx, tx, f.Owner, more, more, p.Limits); err != nil {
				return nil, err
			}
		}
		_, err = tx.Send(ctx,
			sqldb.S("insert into file_parts (tenant, file, place, size, object) values ($1, $2, $3, $4, $5)", p.Tenant, p.ID, p.Offset, p.Size, p.Object),
			sqldb.S("update files set received = $3, hash = $4, expire_time = clock_timestamp() + $5::interval where tenant = $1 and file = $2",
				p.Tenant, p.ID, p.Offset+p.Size, p.Hash, p.UploadTTL))
		return nil, err
	})
}

// FinishFile implements store.Files.
func (t files) FinishFile(ctx context.Context, tenant, id string, size int64, sum []byte) error {
	return t.db.Write(ctx, "finish a file", func(tx Tx) ([]store.Wake, error) {
		f, err := uploading(ctx, tx, tenant, id, size)
		if err != nil {
			return nil, err
		}
		if less := size - f.Counted(); less != 0 { // it ends before its announced size
			if err := charge(ctx, tx, f.Owner, less, less, store.FileLimits{}); err != nil {
				return nil, err
			}
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, "update files set ready = $3, size = $4, hash = $5, expire_time = $6 where tenant = $1 and file = $2",
			tenant, id, true, size, sum, f.Until(now))
		return nil, err
	})
}

// DeleteFile implements store.Files.
func (t files) DeleteFile(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return once(ctx, t.db, "delete file", request{r, tenant, "", id}, nil, func(tx Tx) ([]store.Wake, error) {
		return dropFile(ctx, tx, tenant, id, time.Time{})
	})
}

// dropFile deletes a file, if its time has come before the given one, which may be zero.
func dropFile(ctx context.Context, tx Tx, tenant, id string, before time.Time) ([]store.Wake, error) {
	f, err := scanFile(tx.QueryRow(ctx, "select "+fileColumns+" from files where tenant = $1 and file = $2"+forChange, tenant, id))
	switch {
	case err != nil:
		return nil, err
	case !before.IsZero() && (f.Expire == nil || f.Expire.After(before)):
		return nil, store.ErrNotFound
	}
	if err := charge(ctx, tx, f.Owner, -f.Counted(), 0, store.FileLimits{}); err != nil {
		return nil, err
	}
	if _, err := tx.Send(ctx,
		sqldb.S("delete from file_parts where tenant = $1 and file = $2", tenant, id),
		sqldb.S("delete from files where tenant = $1 and file = $2", tenant, id)); err != nil {
		return nil, err
	}
	return putJobs(ctx, tx, []store.Job{{Tenant: tenant, Kind: store.JobFile, ID: id}})
}

// ExpireFiles implements store.Files.
func (t files) ExpireFiles(ctx context.Context, most int) (int, error) {
	type name struct{ tenant, id string }
	var now time.Time
	found, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (n name, err error) {
		return n, r.Scan(&n.tenant, &n.id, &now)
	}, "select tenant, file, clock_timestamp() from files where expire_time <= clock_timestamp() order by expire_time limit $1", sqldb.Limit(most))
	if err != nil {
		return 0, t.db.Fail("list files whose time has come", err)
	}
	gone := 0
	for _, n := range found {
		err := t.db.Write(ctx, "delete a file whose time has come", func(tx Tx) ([]store.Wake, error) {
			return dropFile(ctx, tx, n.tenant, n.id, now)
		})
		switch {
		case err == nil:
			gone++
		case errors.Is(err, store.ErrNotFound), errors.Is(err, sql.ErrNoRows): // it was deleted or went on meanwhile
		default:
			return gone, err
		}
	}
	return gone, nil
}
