package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb/sqldbtest"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
)

func TestSQL(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	table := fstest.MapFS{"00001_things.sql": &fstest.MapFile{Data: []byte("-- +goose Up\n" + sqldbtest.Table("integer", "blob") + ";\n")}}
	if err := sqlite.Migrate(t.Context(), db, table); err != nil {
		t.Fatal(err)
	}
	sqldbtest.Run(t, func(ctx context.Context, f func(sqldb.Tx) error) error {
		return db.Tx(ctx, func(tx *sql.Tx) error { return f(sqlite.SQL{Querier: tx, Clock: time.Now}) })
	})
}
