package box

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

func TestAStartThatTheDiskForgotIsLost(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	for _, id := range []string{"kept", "gone", "torn", "settled"} {
		finish(t, n, id)
	}
	if err := n.Acknowledge(testCall("settled")); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	// What a crash of the machine may do to what was not synced.
	forgetEnds(t, o.Dir)
	execs := filepath.Join(o.Dir, "t", "s", "execs")
	if err := errors.Join(os.RemoveAll(filepath.Join(execs, "gone")), os.Truncate(filepath.Join(execs, "torn", recordFile), 0)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	for id, want := range map[string]Reason{"kept": Exited, "gone": Lost, "torn": Lost} {
		e, attached, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
		if err != nil || !attached || e.Outcome().Reason != want {
			t.Errorf("%s: attached %v, %v", id, attached, err)
		}
	}
	if _, _, err := n.Start(t.Context(), testCall("settled"), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrAcknowledged) {
		t.Errorf("settled: %v", err)
	}
}

// forgetEnds leaves the journal's starts alone, as a crash of the machine may.
func forgetEnds(t *testing.T, dir string) {
	t.Helper()
	all, err := readJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	var starts []byte
	for _, e := range all {
		if packet, err := e.encode(); err != nil {
			t.Fatal(err)
		} else if e.End == nil {
			starts = append(starts, packet...)
		}
	}
	if err := errors.Join(os.WriteFile(journalPath(dir, 0), starts, 0o600), os.Remove(journalPath(dir, 1))); err != nil {
		t.Fatal(err)
	}
}

func TestAnEndIsInTheJournalUntilItIsRecorded(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	path := func(id string) string { return filepath.Join(o.Dir, "t", "s", "execs", id, recordFile) }
	finish(t, n, "a")
	if _, err := os.Stat(path("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a quick command has a record at once: %v", err)
	}
	n.tidy()
	var r record
	if err := read(path("a"), &r); err != nil || r.Outcome == nil || r.Outcome.Reason != Exited {
		t.Errorf("%+v, %v", r, err)
	}
	if n.journal.mu.Lock(); len(n.journal.unrecorded()) != 0 {
		t.Error("the journal does not know of the record")
	}
	n.journal.mu.Unlock()
	long := strings.Repeat("x", longEnd)
	e, _, err := n.Start(t.Context(), testCall("long"), Spec{Argv: []string{long}})
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	if err := read(path("long"), &r); err != nil || r.Outcome == nil || r.Argv[0] != long {
		t.Errorf("an end that is too long for the journal has no record: %v, %v", r.Outcome, err)
	}
}

func TestAnEndThatTheServiceCouldNotRecordIsKept(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	ids := []string{"forgotten", "cancelled", "marked", "torn", "settled"}
	for _, id := range ids {
		finish(t, n, id)
	}
	if err := errors.Join(n.Acknowledge(testCall("settled")), n.Close()); err != nil {
		t.Fatal(err)
	}
	// What is there when the service is killed in the moments before the record.
	dir := func(id string) string { return filepath.Join(o.Dir, "t", "s", "execs", id) }
	err := errors.Join(
		os.RemoveAll(dir("forgotten")),
		save(filepath.Join(dir("cancelled"), recordFile), record{CallID: "cancelled", Digest: Spec{Argv: []string{"x"}}.digest(), Cancelled: true}),
		save(filepath.Join(dir("marked"), recordFile), record{CallID: "marked", Cancelled: true}),
		os.Truncate(filepath.Join(dir("torn"), recordFile), 0))
	if err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	for _, id := range []string{"forgotten", "torn"} {
		e, attached, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
		if err != nil || !attached || e.Outcome().Reason != Exited || e.Argv()[0] != "x" {
			t.Errorf("%s: attached %v, %v", id, attached, err)
		}
	}
	for _, id := range []string{"cancelled", "marked"} {
		if _, _, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrCancelled) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if e, err := n.Find(testCall("cancelled")); err != nil || e.Outcome() == nil || e.Outcome().Reason != Exited {
		t.Errorf("the end of a cancelled command is forgotten: %v", err)
	}
	if _, _, err := n.Start(t.Context(), testCall("settled"), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrAcknowledged) {
		t.Errorf("settled: %v", err)
	}
}

func TestAStartOfADeletedWorkspaceIsForgotten(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	k := Key{"t", "s"}
	ensure(t, n, k)
	finish(t, n, "a")
	if err := n.Delete(k, 0); err != nil {
		t.Fatal(err)
	}
	ensure(t, n, k)
	if err := n.Close(); err != nil { // it records the ends that are not recorded yet
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(o.Dir, "t", "s", "execs")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	n = openNode(t, o)
	if _, err := n.Find(testCall("a")); !errors.Is(err, ErrNoExec) {
		t.Errorf("%v", err)
	}
}

func TestAFullJournalHasRunningCommandsRecorded(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	e := newExec(n, filepath.Join(o.Dir, "t", "s", "execs", "runs"), record{CallID: "runs", Digest: []byte("x"), Started: time.Now()})
	gone := newExec(n, filepath.Join(o.Dir, "t", "s", "execs", "gone"), record{CallID: "gone", Digest: []byte("x"), Started: time.Now()})
	// Its workspace is being deleted, and its commands do not know that yet.
	deleted := newExec(n, filepath.Join(o.Dir, "t", "deleted", "execs", "deleted"), record{CallID: "deleted", Digest: []byte("x"), Started: time.Now()})
	for _, x := range []*Exec{e, gone, deleted} {
		if err := n.journal.add(startEntry{CallID: x.rec.CallID}, x)(); err != nil {
			t.Fatal(err)
		}
	}
	gone.abandon()
	n.journal.mu.Lock()
	err := n.journal.switchFile()
	n.journal.mu.Unlock()
	if err = errors.Join(err, <-n.journal.spare); err != nil {
		t.Errorf("the journal cannot switch files: %v", err)
	}
	n.journal.spare <- nil // it has ended
	var r record
	if err := read(filepath.Join(e.keeper.dir, recordFile), &r); err != nil || r.CallID != "runs" || r.Outcome != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(gone.keeper.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is kept of a command that was forgotten: %v", err)
	}
	if all, err := readJournal(o.Dir); err != nil || len(all) != 0 {
		t.Errorf("%d starts, %v", len(all), err)
	}
}

func TestALostCommandIsListedWithItsArguments(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	finish(t, n, "a")
	if err := errors.Join(n.Close(), os.RemoveAll(filepath.Join(o.Dir, "t", "s", "execs", "a"))); err != nil {
		t.Fatal(err)
	}
	forgetEnds(t, o.Dir)
	n = openNode(t, o)
	e, err := n.Find(testCall("a"))
	if err != nil || e.Outcome().Reason != Lost || len(e.Argv()) != 1 || e.Argv()[0] != "x" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestAnAcknowledgedCommandLeavesNoFolder(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	for i := range 50 { // its end is being recorded meanwhile
		id := "a" + strconv.Itoa(i)
		e, _, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Follow(t.Context(), Offsets{}, func(Piece) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := n.Acknowledge(testCall(id)); err != nil {
			t.Fatal(err)
		}
		<-e.done
	}
	if left, err := os.ReadDir(filepath.Join(o.Dir, "t", "s", "execs")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// One start waits for the disk while the next one begins the other file: what is on the disk of
// the first file says nothing of the second.
func TestAStartWaitsForTheFileThatItIsIn(t *testing.T) {
	j, err := openJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 100)
	first := j.begin(packet, func() {})
	j.at = journalSize
	second := j.begin(packet, func() {})
	if err := first(); err != nil {
		t.Error(err)
	}
	cleared := <-j.spare // no other goroutine writes into the files
	j.spare <- cleared
	if err := j.files[1].Close(); err != nil { // it cannot be synced
		t.Fatal(err)
	}
	if err := second(); err == nil {
		t.Error("the second one is let go, and is not on the disk")
	}
	if err := j.files[0].Close(); err != nil || cleared != nil {
		t.Error(cleared, err)
	}
}

// restart is what a service does that is stopped in order and started again, when other commands
// have filled its journal.
func restart(t *testing.T, n *Node) *Node {
	t.Helper()
	packet := make([]byte, 100_000)
	for range 2 * journalSize / len(packet) {
		if err := n.journal.begin(packet, func() {})(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return openNode(t, n.o)
}

func TestAnEndThatCouldNotBeRecordedIsRecordedLater(t *testing.T) {
	f := &fake{}
	n := openNode(t, options(t, f))
	ensure(t, n, Key{"t", "s"})
	dir := filepath.Join(n.o.Dir, "t", "s", "execs", "a")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the way of the record's folder
		t.Fatal(err)
	}
	spec := Spec{Argv: []string{strings.Repeat("x", longEnd)}} // which the journal does not take
	e, _, err := n.Start(t.Context(), testCall("a"), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	n.tidy()
	n = restart(t, n)
	e, attached, err := n.Start(t.Context(), testCall("a"), spec)
	if err != nil || !attached || f.starts != 1 || e.Outcome().Reason != Exited {
		t.Errorf("attached %v after %d starts, %v", attached, f.starts, err)
	}
}

func TestADamagedRecordStandsForALostCommand(t *testing.T) {
	f := &fake{}
	n := openNode(t, options(t, f))
	ensure(t, n, Key{"t", "s"})
	for _, id := range []string{"known", "torn"} {
		finish(t, n, id)
	}
	n.tidy()
	if err := os.Truncate(filepath.Join(n.o.Dir, "t", "s", "execs", "torn", recordFile), 20); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what it found is remembered
		n = restart(t, n)
		for id, want := range map[string]Reason{"known": Exited, "torn": Lost} {
			e, attached, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
			if err != nil || !attached || f.starts != 2 || e.Outcome().Reason != want {
				t.Fatalf("%s: attached %v after %d starts, %v", id, attached, f.starts, err)
			}
		}
		if all, err := n.List(Key{"t", "s"}); err != nil || len(all) != 2 {
			t.Errorf("%d commands, %v", len(all), err)
		}
	}
	if err := n.Delete(Key{"t", "s"}, 0); err != nil {
		t.Error(err)
	}
}

func TestARecordIsWholeOrNotThere(t *testing.T) {
	dir := smalldisk.New(t, "size=8192")
	path := filepath.Join(dir, recordFile)
	if err := noteNew(path, strings.Repeat("x", 16384)); err == nil {
		t.Fatal("the disk is not small")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a part of it: %v", err)
	}
	if err := noteNew(path, "short"); err != nil {
		t.Error(err)
	}
}

// The journal forgets a start in time, and then an acknowledgement alone keeps the command from
// running again.
func TestTheJournalKnowsWhichStartsItHolds(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	e, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	if !n.journal.contains(e) {
		t.Error("it does not hold one that has just begun")
	}
	n = restart(t, n)
	e, err = n.Find(testCall("a"))
	if err != nil || n.journal.contains(e) {
		t.Errorf("a new journal holds an old start, %v", err)
	}
	if err := n.Acknowledge(testCall("a")); err != nil {
		t.Error(err)
	}
}

func TestAJournalGoesRound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("x", 12_000)
	released := &Exec{keeper: recordKeeper{gone: true}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 40 { // four times what one file holds, in all
				if err := j.add(startEntry{CallID: id, Started: time.Unix(1, 0)}, released)(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := j.add(startEntry{CallID: "last", Started: time.Unix(2, 0)}, released)(); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	all, err := readJournal(dir)
	if err != nil || len(all) == 0 || len(all) > 80 {
		t.Fatalf("%d starts, %v", len(all), err)
	}
	last := false
	for _, e := range all {
		last = last || e.CallID == "last"
	}
	if !last {
		t.Error("the last one is not there")
	}
	// A torn one ends its file, and is none.
	for i := range 2 {
		f, err := os.OpenFile(journalPath(dir, i), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte("torn"), 20)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if torn, err := readJournal(dir); err != nil || len(torn) != 0 {
		t.Errorf("%d starts of %d, %v", len(torn), len(all), err)
	}
}
