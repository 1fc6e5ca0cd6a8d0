package box

import (
	"fmt"
	"testing"
	"time"
)

// full is a disk that is nearly full.
type full struct{}

func (full) Check() error                { return nil }
func (full) Tight() bool                 { return true }
func (full) Low() bool                   { return false }
func (full) Free() (bytes, inodes int64) { return 0, 0 }

// The import of a workspace takes as long as its sender
// takes. The node goes on meanwhile.
func TestAnImportThatTakesLongHoldsUpNoHousekeeping(t *testing.T) {
	o := options(t, &fake{})
	o.DiskSpace = full{}
	n := openNode(t, o)
	begun, goOn, imported := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := n.Import(testCall("import"), func(*Workspace) error {
			close(begun)
			<-goOn
			return nil
		})
		imported <- err
	}()
	<-begun
	tidied := make(chan struct{})
	go func() {
		n.tidy()
		n.reclaimer.clearUp(t.Context())
		close(tidied)
	}()
	select {
	case <-tidied:
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
	close(goOn)
	<-tidied
	if err := <-imported; err != nil {
		t.Error(err)
	}
}

// Unacknowledged results are kept up to their limit, however many
// come in a minute.
func TestAllResultsAboveTheNumberGo(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, testCall("").Key)
	var last *Exec
	for i := range 9 {
		e, _, err := n.Start(t.Context(), testCall(fmt.Sprint("c", i)), Spec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		<-e.done
		last = e
	}
	n.tidy()
	kept, err := n.List(testCall("").Key)
	if err != nil || len(kept) != n.o.Keep.Finished {
		t.Errorf("%d are kept, %v", len(kept), err)
	}
	if len(kept) == 0 || kept[len(kept)-1] != last {
		t.Error("the last one is not among them")
	}
}
