package pg_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb/sqldbtest"
)

func TestSQL(t *testing.T) {
	pool := open(t, pgtest.New(t), "things")
	table := fstest.MapFS{"00001_things.sql": &fstest.MapFile{Data: []byte("-- +goose Up\n" + sqldbtest.Table("timestamptz", "bytea") + ";\n")}}
	if err := pg.Migrate(t.Context(), pool, "things", table); err != nil {
		t.Fatal(err)
	}
	sqldbtest.Run(t, func(ctx context.Context, f func(sqldb.Tx) error) error {
		return pg.Tx(ctx, pool, func(tx pgx.Tx) error { return f(pg.SQL{Querier: tx}) })
	})
}
