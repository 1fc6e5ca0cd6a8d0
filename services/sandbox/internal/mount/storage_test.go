package mount

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// Two nodes with one file system for storage make a user's folder once: what was written to
// another one would be lost.
func TestNodesAgreeOnAUsersStorage(t *testing.T) {
	t.Parallel()
	o := Options{Storage: Storage{Dir: t.TempDir(), Alias: "storage"}, Covers: t.TempDir(), Owners: box.Owners{Base: -1}, Leftovers: erase.NewLater(slog.New(slog.DiscardHandler))}
	var nodes [2]*Set
	for i := range nodes {
		var err error
		if nodes[i], err = New(o); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 300 {
		user := fmt.Sprint("user", n)
		var sources [len(nodes)]string
		var all sync.WaitGroup
		for i, s := range nodes {
			all.Go(func() {
				m, err := s.storage("acme", user)
				if err != nil {
					t.Error(err)
					return
				}
				sources[i] = m.Source
			})
		}
		all.Wait()
		if sources[0] != sources[1] {
			t.Fatalf("one has %s, the other one %s", sources[0], sources[1])
		}
	}
}

// A node that starts finishes what others left, and breaks nothing that one does meanwhile.
func TestANodesStartDisturbsNoOther(t *testing.T) {
	t.Parallel()
	o := Options{Storage: Storage{Dir: t.TempDir(), Alias: "storage"}, Covers: t.TempDir(), Owners: box.Owners{Base: -1}, Leftovers: erase.NewLater(slog.New(slog.DiscardHandler))}
	one, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var starts sync.WaitGroup
	starts.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := New(o); err != nil {
				t.Errorf("the start: %v", err)
				return
			}
		}
	})
	for n := range 300 {
		user := fmt.Sprint("user", n)
		_, err := one.storage("acme", user)
		if err := errors.Join(err, one.DeleteStorage("acme", user)); err != nil {
			t.Errorf("the other one: %v", err)
			break
		}
	}
	close(done)
	starts.Wait()
}

func TestAStorageThatCannotBeDeletedKeepsNobodyFromStarting(t *testing.T) {
	o := Options{Storage: Storage{Dir: t.TempDir(), Alias: "storage"}, Covers: t.TempDir(), Owners: box.Owners{Base: -1}, Leftovers: erase.NewLater(slog.New(slog.DiscardHandler))}
	free := smalldisk.Lasting(t, filepath.Join(o.Storage.Dir, ".removed", "x", "y"))
	if _, err := New(o); err != nil || o.Leftovers.Pending() != 1 {
		t.Errorf("%d are left, %v", o.Leftovers.Pending(), err)
	}
	free()
	if o.Leftovers.Retry(); o.Leftovers.Pending() != 0 {
		t.Error("it is left still")
	}
}

// What could not be deleted is asked for again, and is not said to be gone before it is.
func TestAStorageIsDeletedWhenNothingOfItIsLeft(t *testing.T) {
	o := Options{Storage: Storage{Dir: t.TempDir(), Alias: "storage"}, Covers: t.TempDir(), Owners: box.Owners{Base: -1}, Leftovers: erase.NewLater(slog.New(slog.DiscardHandler))}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		if m, err := s.storage("acme", user); err != nil || m == nil {
			t.Fatalf("%v, %v", m, err)
		}
	}
	free := smalldisk.Lasting(t, filepath.Join(s.folder("acme", "ann"), "x", "y"))
	for range 2 {
		if err := s.DeleteStorage("acme", "ann"); err == nil {
			t.Error("it is said to be deleted")
		}
	}
	if err := s.DeleteStorage("acme", "bob"); err != nil {
		t.Errorf("another one's: %v", err)
	}
	free()
	if err := s.DeleteStorage("acme", "ann"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.removed()); err != nil || len(left) > 0 {
		t.Errorf("there is %v: %v", left, err)
	}
}
