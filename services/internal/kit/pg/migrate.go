package pg

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// ErrNewer is returned by Migrate for a schema that a later version of the program has migrated.
var ErrNewer = errors.New("the database has been migrated by a newer version of this program; run that version or restore a backup")

// Migrate brings schema up to the last migration (goose's SQL files in the root of migrations), creating it
// if necessary. Programs that start together take turns by an advisory lock. pool must come from Open with
// the same schema.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string, migrations fs.FS) error {
	if err := migrate(ctx, pool, schema, migrations); err != nil {
		return fmt.Errorf("migrate schema %s: %w", schema, err)
	}
	return nil
}

func migrate(ctx context.Context, pool *pgxpool.Pool, schema string, migrations fs.FS) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	key := lockKey(schema)
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", key); err != nil {
		return fmt.Errorf("wait for the migration lock: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		if _, e := conn.Exec(ctx, "select pg_advisory_unlock($1)", key); e != nil {
			err = errors.Join(err, conn.Conn().Close(ctx)) // the lock ends with the connection
		}
	}()
	if _, err := conn.Exec(ctx, "create schema if not exists "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return err
	}
	return up(ctx, pool, migrations)
}

func up(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w (schema version %d, program's version %d)", ErrNewer, current, target)
	}
	_, err = p.Up(ctx)
	return err
}

// lockKey separates the locks of services that share a database.
func lockKey(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("fairlead/migrate/" + schema))
	return int64(h.Sum64()) // any 64 bits will do
}
