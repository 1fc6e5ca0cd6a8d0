package box

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// A line that was torn, by a crash or a full disk, is no part of the next one.
func TestATornLineTakesNoOtherAlong(t *testing.T) {
	n := &Node{o: Options{Now: time.Now}, journal: &journal{}}
	open := func(dir string) *execs {
		s := newExecs(location{node: n, dir: dir})
		if err := s.loadSettled(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, settledFile), []byte("1700000000 whole\n1700000001 to"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(dir)
	if _, half := s.settled["to"]; half || len(s.settled) != 1 {
		t.Errorf("it remembers %v", s.settled)
	}
	for _, id := range []string{"next", "last"} {
		if err := s.settle(id); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for id := range open(dir).settled {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"last", "next", "whole"}) {
		t.Errorf("it remembers %v", ids)
	}
}

func TestAFullDiskTearsNoLine(t *testing.T) {
	dir := smalldisk.New(t, "size=4096")
	path := filepath.Join(dir, settledFile)
	if err := os.WriteFile(path, make([]byte, 4090), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newExecs(location{node: &Node{o: Options{Now: time.Now}, journal: &journal{}}, dir: dir})
	if err := s.settle("id"); err == nil || len(s.settled) > 0 {
		t.Errorf("it remembers %v, %v", s.settled, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 4090 {
		t.Errorf("the file is %v, %v", st, err)
	}
}

func TestAnAcknowledgementIsOnTheDiskUnlessTheJournalHasTheStart(t *testing.T) {
	s := newExecs(location{node: &Node{o: Options{Now: time.Now}, journal: &journal{switches: 2}}, dir: t.TempDir()})
	s.all = map[string]*Exec{"held": {start: start{file: 2}}, "switched": {start: start{file: 1}}}
	path := s.path(settledFile)
	if err := unix.Mkfifo(path, 0o600); err != nil { // which takes a line, and cannot be synced
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	for id, synced := range map[string]bool{"held": false, "switched": true, "of an earlier process": true} {
		if err := s.settle(id); (err != nil) != synced {
			t.Errorf("%s: %v", id, err)
		}
	}
}
