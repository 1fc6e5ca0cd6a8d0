package pg_test

import (
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
)

func TestADatabaseIsNamedWithoutItsPassword(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://ann:secret@db.example/fairlead":                             "fairlead of Postgres at db.example",
		"postgres://ann:secret@db1:5432,db2:5433/fairlead?sslmode=disable":      "fairlead of Postgres at db1, db2",
		"postgresql://db.example/fairlead?user=ann&password=secret":             "fairlead of Postgres at db.example",
		"postgres://ann@/fairlead?host=/run/postgresql&password=secret":         "fairlead of Postgres at /run/postgresql",
		"postgres://ann:sec%2Fret@[::1]:5432/fairlead?target_session_attrs=any": "fairlead of Postgres at ::1",
		"no address": "Postgres",
	} {
		if got := pg.Name(url); got != want {
			t.Errorf("%s: %q, not %q", url, got, want)
		}
	}
}
