// Package sqlitetest gives tests databases whose schema is there already. To migrate one takes longer than what most
// tests do with it, with the race detector ten times as long.
package sqlitetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
)

// Template is an empty database that has been migrated once, by the first test that wants a copy. Any number of tests
// may use it at the same time.
type Template struct {
	file func() ([]byte, error)
}

// NewTemplate is the database that these migrations make. Whoever opens a copy finds nothing left to migrate.
func NewTemplate(migrations fs.FS) *Template {
	return &Template{file: sync.OnceValues(func() ([]byte, error) { return migrated(migrations) })}
}

// Copy writes a copy to path, where there must be no database, and makes its folder if need be.
func (m *Template) Copy(t testing.TB, path string) {
	t.Helper()
	file, err := m.file()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatalf("a migrated database at %s: %v", path, err)
	}
}

// migrated is the file. It is made where no test's end removes it, and outlasts no test's context.
func migrated(migrations fs.FS) (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "fairlead-template-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, ctx := filepath.Join(dir, "template.db"), context.Background()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(sqlite.Migrate(ctx, db, migrations), db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
