package snapshot

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/forks/forkstest"
)

// A process that is just being started while a program is restored has it open for writing.
func TestAProgramMayBeExecutedOnceItIsRestored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	program := p.path("program")
	p.must(os.WriteFile(program, []byte("#!/bin/true\n"), 0o755))
	p.create("one")
	p.must(os.Remove(program))
	var once sync.Once
	p.tree.Room = func(bytes, _ int64) error {
		if bytes > 0 {
			once.Do(func() { forkstest.Stall(t) })
		}
		return nil
	}
	p.restore("one")
	p.must(exec.CommandContext(t.Context(), program).Run())
}
