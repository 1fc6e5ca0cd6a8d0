package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A crash of the machine can lose the record of a snapshot that was only named.
func TestALostNameIsRecovered(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(string) error{
		"gone": os.Remove,
		"torn": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write("d/f", "one")
			first := p.create("one")
			two, lost := p.repeated("two")
			if lost == nil || two.Added != 0 || two.Root != first.Root {
				t.Fatalf("an unchanged workspace: record %q, %+v", lost, two)
			}
			all, err := p.store.records()
			p.must(err)
			at := slices.IndexFunc(all, func(r record) bool { return r.id == "two" })
			p.must(lose(filepath.Join(p.where, recordsDir, all[at].file)))
			p.reopen()
			if list, err := p.store.List(-1, 0); err != nil || len(list) != 1 {
				t.Errorf("after the crash: %v, %v", list, err)
			}
			got, err := p.store.Recover("two", lost)
			if diff := cmp.Diff(two, got); err != nil || diff != "" {
				t.Errorf("recovered: %v (-want +got):\n%s", err, diff)
			}
			p.write("d/f", "two")
			p.restore("two")
			if got, err := os.ReadFile(p.path("d/f")); err != nil || string(got) != "one" {
				t.Errorf("it has %q, %v", got, err)
			}
			if _, err := p.store.Recover("three", lost); !errors.Is(err, ErrNotFound) {
				t.Errorf("another snapshot: %v", err)
			}
			p.must(p.store.Delete("one", "two"))
			p.reopen()
			if _, err := p.store.Recover("two", lost); !errors.Is(err, ErrNotFound) {
				t.Errorf("without its contents: %v", err)
			}
		})
	}
}

// repeated makes a snapshot, and returns the record that Intend got.
func (p *testPlace) repeated(id string) (made Snapshot, record []byte) {
	p.t.Helper()
	p.reopen()
	made, err := p.store.Create(p.t.Context(), p.tree, Request{ID: id, Now: time.Now(), Intend: func(raw []byte) error {
		record = raw
		return nil
	}})
	p.must(err)
	return made, record
}
