// Package sqlitetest gives tests databases with a migrated schema. A migration takes longer than most tests
// do, and ten times as long with the race detector.
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

// Template is an empty database that is migrated once, for the first test that requests a copy. Any number of
// tests may use it concurrently.
type Template struct {
	file func() ([]byte, error)
}

// NewTemplate returns the template of these migrations. A copy needs no further migration.
func NewTemplate(migrations fs.FS) *Template {
	return &Template{file: sync.OnceValues(func() ([]byte, error) { return migrated(migrations) })}
}

// Copy writes a copy to path, where no database may exist, and creates its folder if necessary.
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

// migrated returns the content of the file. It is made in a directory that no test's cleanup
// removes, without a test's context.
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
