package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A command may set any time, and a link may lead to as long a name as the kernel takes.
func TestFarTimesAndLongLinksComeBackFromAnArchive(t *testing.T) {
	from, dir := emptyTree(t)
	future := []unix.Timespec{{Sec: 10_413_792_000}, {Sec: 10_413_792_000, Nsec: 7}} // in the year 2300
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o644), os.Mkdir(filepath.Join(dir, "folder"), 0o755),
		unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, "file"), future, 0),
		unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, "folder"), future, 0),
		os.Symlink(strings.Repeat("x", unix.PathMax-1), filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	for format, name := range formatNames {
		var archive bytes.Buffer
		if err := from.Pack(t.Context(), ".", format, &archive); err != nil {
			t.Fatal(err)
		}
		to, copied := emptyTree(t)
		if err := unpackAs(t.Context(), to, format, archive.Bytes(), upTo(10<<20)); err != nil {
			t.Fatal(err)
		}
		want, got := inventory(t, dir), inventory(t, copied)
		if format == Zip { // it has no such times
			want, got = want[strings.Index(want, "/link"):], got[strings.Index(got, "/link"):]
			want, got = wholeSeconds(want), wholeSeconds(got)
		}
		if got != want {
			t.Errorf("%s: packed:\n%.300s\nunpacked:\n%.300s", name, want, got)
		}
	}
}
