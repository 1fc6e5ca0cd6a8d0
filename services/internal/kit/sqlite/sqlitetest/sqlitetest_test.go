package sqlitetest_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCopiesAreMigratedAndApart(t *testing.T) {
	migrations := fstest.MapFS{"00001_a.sql": {Data: []byte("-- +goose Up\ncreate table a (n integer);\n")}}
	template := sqlitetest.NewTemplate(migrations)
	for range 2 {
		path := filepath.Join(t.TempDir(), "new", "test.db")
		template.Copy(t, path)
		db, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		var rows int
		if _, err := db.W.ExecContext(t.Context(), "insert into a values (1)"); err != nil {
			t.Error(err)
		}
		if err := db.R.QueryRowContext(t.Context(), "select count(*) from a").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%d rows, %v", rows, err)
		}
		if err := sqlite.Migrate(t.Context(), db, migrations); err != nil {
			t.Errorf("nothing is left to migrate: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
