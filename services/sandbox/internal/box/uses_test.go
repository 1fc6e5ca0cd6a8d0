package box

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a command did with the network is known also when the service died while it ran.
func TestWhatALostCommandDidWithTheNetworkIsKnown(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	dir := filepath.Join(t.TempDir(), "exec")
	r := record{CallID: "exec", Digest: []byte("x"), Started: time.Now()}
	e := newExec(n, dir, r)
	want := []Use{
		{Host: "a.example.com", Port: 443, Rule: "r", Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: time.Unix(1, 0).UTC(), Duration: time.Second},
		{Host: "b.example.com", Port: 80, Outcome: "denied", Message: "no rule\nallows it", Connections: 1},
	}
	e.noteUse(1, Use{Host: "a.example.com", Outcome: "aborted", Connections: 1}) // when it was open
	for i, u := range want {
		e.noteUse(int64(i+1), u)
	}
	f, err := os.OpenFile(filepath.Join(dir, usesFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"host":"torn`)
	if err := errors.Join(err, f.Close(), save(filepath.Join(dir, recordFile), r)); err != nil {
		t.Fatal(err)
	}
	lost, err := loadExec(n, dir)
	if err != nil {
		t.Fatal(err)
	}
	if o := lost.Outcome(); o.Reason != Lost || cmp.Diff(want, o.Network) != "" {
		t.Errorf("it ended %+v: %s", o, cmp.Diff(want, o.Network))
	}
	again, err := loadExec(n, dir)
	if err != nil || cmp.Diff(want, again.Outcome().Network) != "" {
		t.Errorf("the next time %+v, %v", again.Outcome(), err)
	}
}

func TestNothingIsNotedOfACommandThatIsForgotten(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	dir := filepath.Join(t.TempDir(), "exec")
	e := newExec(n, dir, record{CallID: "exec"})
	e.abandon()
	e.noteUse(1, Use{Host: "a", Connections: 1})
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is there again: %v", err)
	}
}

// A disk that was full for a moment takes nothing but what was noted then.
func TestATornNoteHidesNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exec")
	var log strings.Builder
	o := options(t, &fake{})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	e := newExec(openNode(t, o), dir, record{CallID: "exec"})
	if err := os.MkdirAll(filepath.Join(dir, usesFile), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e.noteUse(1, Use{Host: "not noted", Connections: 1}) // in the file's place is a folder
	}
	if n := strings.Count(log.String(), "cannot note"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log.String())
	}
	err := errors.Join(os.Remove(filepath.Join(dir, usesFile)), os.WriteFile(filepath.Join(dir, usesFile), []byte(`{"number":2,"host":"torn`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2) {
		e.noteUse(3+i, Use{Host: "b", Connections: 1})
	}
	if uses, err := readUses(dir); len(uses) != 2 || err != nil {
		t.Errorf("known is %v, %v", uses, err)
	}
}
