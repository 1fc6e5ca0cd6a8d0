package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

var _ store.Members = (*Store)(nil)

// Enlist implements store.Members.
func (s *Store) Enlist(ctx context.Context, m store.Member) error {
	return s.db.write(ctx, "enlist this server", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from nodes n where name <> $1 and seen < clock_timestamp() - interval '1 day'
			and not exists (select from places p where p.node = n.name)`, m.Name); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into nodes (name, address, instance, seen) values ($1, $2, $3, clock_timestamp())
			on conflict (name) do update set address = excluded.address, instance = excluded.instance, seen = excluded.seen`,
			m.Name, m.Address, m.Instance)
		return err
	})
}

// Beat implements store.Members.
func (s *Store) Beat(ctx context.Context, m store.Member) error {
	tag, err := s.db.pool.Exec(ctx, `insert into nodes as n (name, address, instance, seen) values ($1, $2, $3, clock_timestamp())
		on conflict (name) do update set address = excluded.address, seen = excluded.seen where n.instance = excluded.instance`,
		m.Name, m.Address, m.Instance)
	if err == nil && tag.RowsAffected() == 0 {
		return store.ErrReplaced
	}
	return fail("record that this server runs", err)
}

// Leave implements store.Members.
func (s *Store) Leave(ctx context.Context, m store.Member) error {
	return s.db.write(ctx, "record that this server stops", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from nodes n where name = $1 and instance = $2
			and not exists (select from places p where p.node = n.name)
			and not exists (select from jobs j where j.kind = $3 and position(convert_to(n.name, 'UTF8') in j.body) > 0)`,
			m.Name, m.Instance, store.JobVacate); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update nodes set address = '', seen = clock_timestamp() where name = $1 and instance = $2", m.Name, m.Instance)
		return err
	})
}

// Members implements store.Members.
func (s *Store) Members(ctx context.Context) ([]store.Member, error) {
	all, err := collect(ctx, s.db.pool, func(r pgx.CollectableRow) (m store.Member, err error) {
		var silent float64
		err = r.Scan(&m.Name, &m.Address, &m.Instance, &silent, &m.Empty)
		m.Silent = time.Duration(silent * float64(time.Second))
		return m, err
	}, `select name, address, instance, extract(epoch from clock_timestamp() - seen)::float8, not exists (select from places p where p.node = n.name)
		from nodes n order by name`)
	return all, fail("list the servers", err)
}

// InternalKey implements store.Members.
func (s *Store) InternalKey(ctx context.Context, fresh []byte) (seed []byte, err error) {
	err = s.db.write(ctx, "read the internal key", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into internal_key (seed) values ($1) on conflict do nothing", fresh); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "select seed from internal_key").Scan(&seed)
	})
	return seed, err
}

// ReadInternalKey reads the internal key that servers on a database share, and changes nothing.
func ReadInternalKey(ctx context.Context, url string, log *slog.Logger) (seed []byte, err error) {
	pool, err := pg.Open(ctx, url, Schema, log)
	if err != nil {
		return nil, fail("open the session database", err)
	}
	defer pool.Close()
	return seed, fail("read the internal key", pool.QueryRow(ctx, "select seed from internal_key").Scan(&seed))
}
