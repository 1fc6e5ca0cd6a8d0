package box

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

func openDir(t *testing.T) *dataDir {
	t.Helper()
	d, err := openDataDir(t.TempDir(), erase.NewLater(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	return d
}

func TestADataDirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	d := openDir(t)
	if _, err := openDataDir(d.path, d.leftovers); err == nil || !strings.Contains(err.Error(), "another sandbox service") {
		t.Errorf("a second owner: %v", err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDataDir(d.path, d.leftovers)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreListedByTheirAge(t *testing.T) {
	t.Parallel()
	d := openDir(t)
	ages := map[Key]time.Duration{{"t", "young"}: time.Minute, {"t", "old"}: time.Hour, {"A b", "middle"}: 10 * time.Minute}
	for k, age := range ages {
		execs := filepath.Join(d.path, k.folder(), k.Session, "execs")
		at := time.Now().Add(-age)
		if err := os.MkdirAll(execs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(execs, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"t/being-made", ".spare/0/execs"} {
		if err := os.MkdirAll(filepath.Join(d.path, other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.byAge()
	if want := []Key{{"t", "old"}, {"A b", "middle"}, {"t", "young"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestADiscardedFolderIsGone(t *testing.T) {
	t.Parallel()
	d := openDir(t)
	folder := filepath.Join(d.path, "t", "s")
	if err := os.MkdirAll(filepath.Join(folder, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a missing one counts as discarded
		if err := d.discard(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(d.path, trash, "torn", "x"), 0o700); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	if err := d.emptyTrash(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(d.path, trash))
	if _, gone := os.Stat(folder); err != nil || len(left) != 0 || !os.IsNotExist(gone) {
		t.Errorf("%d folders are in the trash: %v; the folder: %v", len(left), err, gone)
	}
}

func TestShortLivedFoldersOfACrashAreRemoved(t *testing.T) {
	t.Parallel()
	d := openDir(t)
	probe, err := PassingFolder(d.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.clearPassing(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(probe); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
