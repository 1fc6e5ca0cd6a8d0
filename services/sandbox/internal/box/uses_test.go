package box

import (
	"errors"
	"os"
	"path/filepath"
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
