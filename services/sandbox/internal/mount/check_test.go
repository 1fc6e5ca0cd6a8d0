package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A start does not wait until a large source was walked to its end.
func TestALargeSourceIsNotWalkedToItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	last := filepath.Join(dir, "z")
	if err := os.Mkdir(last, 0o700); err != nil {
		t.Fatal(err)
	}
	const most = 10
	for n := range most {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(watch) }()
	if _, err := unix.InotifyAddWatch(watch, last, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if err := noSockets(dir, most); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it looked into the last folder: %d bytes of events, %v", n, err)
	}
}
