package forks

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// written returns a file that is open for writing, and for reading.
func written(t *testing.T) (writer, reader *os.File) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	writer, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	reader, err = os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = writer.Close(), reader.Close() })
	return writer, reader
}

// A process that a busy machine starts slowly keeps a descriptor for tens of milliseconds.
func TestAProgramIsFreeOnceASlowStartIsOver(t *testing.T) {
	writer, reader := written(t)
	const slow = 100 * time.Millisecond
	begun := time.Now()
	started := time.AfterFunc(slow, func() { _ = writer.Close() })
	defer started.Stop()
	if !Await(reader) {
		t.Errorf("it gave up after %v", time.Since(begun))
	}
}

func TestTheWaitForAFileThatStaysBusyIsBounded(t *testing.T) {
	_, reader := written(t)
	begun := time.Now()
	if free := Await(reader); free {
		t.Skip("this file system grants no leases")
	}
	if took := time.Since(begun); took < patience || took > 20*patience {
		t.Errorf("it took %v", took)
	}
}
