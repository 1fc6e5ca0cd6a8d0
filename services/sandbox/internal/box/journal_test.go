package box

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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
	execs := filepath.Join(o.Dir, "t", "s", "execs")
	if err := errors.Join(os.RemoveAll(filepath.Join(execs, "gone")), os.Truncate(filepath.Join(execs, "torn", recordFile), 0)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	for id, want := range map[string]Reason{"kept": Exited, "gone": Lost, "torn": Lost} {
		e, attached, err := n.Start(t.Context(), testCall(id), 0, Spec{Argv: []string{"x"}})
		if err != nil || !attached || e.Outcome().Reason != want {
			t.Errorf("%s: attached %v, %v", id, attached, err)
		}
	}
	if _, _, err := n.Start(t.Context(), testCall("settled"), 0, Spec{Argv: []string{"x"}}); !errors.Is(err, ErrAcknowledged) {
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
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	if _, err := n.Find(testCall("a")); !errors.Is(err, ErrNoExec) {
		t.Errorf("%v", err)
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
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 { // four times what one file holds, in all
				if err := j.add(startEntry{CallID: id, Started: time.Unix(1, 0)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := j.add(startEntry{CallID: "last", Started: time.Unix(2, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	all, err := readJournal(dir)
	if err != nil || len(all) == 0 || len(all) > 40 {
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
