package box

import (
	"testing"
	"time"
)

// full is a disk that is nearly full.
type full struct{}

func (full) Check() error { return nil }
func (full) Tight() bool  { return true }

// A workspace that is being brought from elsewhere takes as long as whoever sends it
// likes. The node goes on meanwhile.
func TestAnImportThatTakesLongHoldsUpNoHousekeeping(t *testing.T) {
	o := options(t, &fake{})
	o.Room = full{}
	n := openNode(t, o)
	begun, goOn, imported := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := n.Import(testCall("import"), 0, func(*Workspace) error {
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
		n.clearUp(t.Context())
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
