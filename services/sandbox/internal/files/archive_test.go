package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// emptyTree opens a new workspace.
func emptyTree(t testing.TB) (*Tree, string) {
	t.Helper()
	root := t.TempDir()
	dir, staging := filepath.Join(root, "workspace"), filepath.Join(root, "staging")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(staging, 0o700)); err != nil {
		t.Fatal(err)
	}
	tree, err := Open(dir, staging, Owner{UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree, dir
}

// upTo reserves as long as no more than these bytes are taken.
func upTo(bytes int64) func(int64) error {
	return func(n int64) error {
		if bytes -= n; n < 0 || bytes < 0 {
			return errors.New("full")
		}
		return nil
	}
}

// inventory tells what is in a folder, with modes, times and content.
func inventory(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %s", strings.TrimPrefix(name, dir), info.Mode(), info.ModTime().UTC().Format(time.RFC3339Nano))
		switch info.Mode().Type() {
		case 0:
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", content)
		case os.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			b.WriteString(" -> " + target)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAWorkspaceIsTheSameAfterItWasPackedAndUnpacked(t *testing.T) {
	from, dir := emptyTree(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	long := strings.Repeat("deep/", 60) + "file"
	if err := errors.Join(
		os.MkdirAll(at("empty"), 0o755), os.MkdirAll(filepath.Dir(at(long)), 0o755),
		os.WriteFile(at("run.sh"), []byte("#!/bin/sh\n"), 0o755), os.WriteFile(at(long), bytes.Repeat([]byte("x"), 100_000), 0o640),
		os.WriteFile(at("none"), nil, 0o600), os.Symlink("/etc/passwd", at("outside")), os.Symlink("nowhere", at("dangling")),
		os.Symlink("run.sh", at("inside")), os.WriteFile(at("name with \n and \xff"), []byte("odd"), 0o644),
		os.Link(at("run.sh"), at("second name")), os.Chmod(at("empty"), 0o555), syscall.Mkfifo(at("pipe"), 0o600),
		os.Chtimes(at("run.sh"), time.Unix(1, 2), time.Unix(3, 4)), os.Chtimes(at("empty"), time.Unix(1, 2), time.Unix(5, 6)),
	); err != nil {
		t.Fatal(err)
	}
	for format, name := range formatNames {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			if err := from.Pack(t.Context(), ".", format, &archive); err != nil {
				t.Fatal(err)
			}
			to, copied := emptyTree(t)
			if err := unpackAs(t.Context(), to, format, archive.Bytes(), upTo(10<<20)); err != nil {
				t.Fatal(err)
			}
			want, got := inventory(t, dir), inventory(t, copied)
			want = regexp.MustCompile(`/pipe .*\n`).ReplaceAllString(want, "")
			if format == Zip { // it keeps whole seconds
				want = wholeSeconds(want)
			}
			if got != want {
				t.Errorf("unpacked\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// wholeSeconds is an inventory without the fractions of its times.
func wholeSeconds(inventory string) string {
	return regexp.MustCompile(`(:\d\d)\.\d+Z`).ReplaceAllString(inventory, "${1}Z")
}

var formatNames = map[Format]string{Tar: "tar", TarGzip: "tar.gz", Zip: "zip"}

func unpackAs(ctx context.Context, tree *Tree, format Format, archive []byte, reserve func(int64) error) error {
	switch from := bytes.NewReader(archive); format {
	case Zip:
		return tree.UnpackZip(ctx, from, from.Size(), 1000, reserve)
	case TarGzip:
		return tree.UnpackGzip(ctx, from, reserve)
	default:
		return tree.Unpack(ctx, from, reserve)
	}
}

// entry is one entry of a hostile archive.
type entry struct {
	tar.Header
	content string
}

func archive(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg}, content}
}

func link(name, to string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
}

func TestAHostileArchiveIsRefusedAndTouchesNothingOutside(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries []entry
	}{
		{"an absolute path", []entry{file("/etc/x", "x")}},
		{"an absolute path below the mount", []entry{file("/workspace/x", "x")}},
		{"a path that leads outside", []entry{file("../canary", "x")}},
		{"a path that leads outside later", []entry{file("a/../../canary", "x")}},
		{"a file through an absolute link", []entry{link("a", "/tmp"), file("a/canary", "x")}},
		{"a file through a link outside", []entry{link("a", "../"), file("a/canary", "x")}},
		{"a file through a link inside", []entry{file("b/x", "x"), link("a", "b"), file("a/canary", "x")}},
		{"a directory in place of a link", []entry{link("a", ".."), {tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o777}, ""}}},
		{"a file over a link", []entry{link("a", "../canary"), file("a", "x")}},
		{"the same file twice", []entry{file("a", "x"), file("a", "y")}},
		{"a link over a file", []entry{file("a", "x"), link("a", "b")}},
		{"a file in a file", []entry{file("a", "x"), file("a/b", "x")}},
		{"a hard link", []entry{{tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}}},
		{"a device", []entry{{tar.Header{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""}}},
		{"a pipe", []entry{{tar.Header{Name: "a", Typeflag: tar.TypeFifo}, ""}}},
		{"folders without end", []entry{file(strings.Repeat("a/", 300)+"x", "x")}},
		{"the workspace itself", []entry{file(".", "x")}},
	} {
		for format, name := range formatNames {
			if format == Zip && tc.name == "a hard link" {
				continue // it has none
			}
			t.Run(tc.name+" in a "+name, func(t *testing.T) {
				tree, dir := emptyTree(t)
				canary := filepath.Join(filepath.Dir(dir), "canary")
				if err := unpackAs(t.Context(), tree, format, archiveAs(t, format, tc.entries), upTo(1<<20)); !errors.Is(err, ErrArchive) {
					t.Errorf("got %v", err)
				}
				if _, err := os.Lstat(canary); err == nil {
					t.Error("a file was written outside")
				}
			})
		}
	}
}

func TestAnEmptyArchiveIsNone(t *testing.T) {
	for format, name := range formatNames {
		tree, _ := emptyTree(t)
		if err := unpackAs(t.Context(), tree, format, nil, upTo(1<<20)); !errors.Is(err, ErrArchive) {
			t.Errorf("a %s: got %v", name, err)
		}
	}
}

// archiveAs is archive in any format.
func archiveAs(t testing.TB, format Format, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	switch format {
	case Zip:
		w := zip.NewWriter(&b)
		for _, e := range entries {
			f := &zip.FileHeader{Name: e.Name, Method: zip.Deflate}
			f.SetMode(e.FileInfo().Mode() | 0o600)
			to, err := w.CreateHeader(f)
			if err == nil && !strings.HasSuffix(e.Name, "/") {
				_, err = io.WriteString(to, e.content+e.Linkname)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	case TarGzip:
		w := gzip.NewWriter(&b)
		_, err := w.Write(archive(t, entries))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	default:
		return archive(t, entries)
	}
}

func TestAnArchiveIsUnpackedOnlyAsFarAsThereIsRoom(t *testing.T) {
	tree, _ := emptyTree(t)
	full := errors.New("full")
	err := tree.Unpack(t.Context(), bytes.NewReader(archive(t, []entry{file("a", strings.Repeat("x", 1000))})), func(n int64) error {
		if n > 999 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	cut := archive(t, []entry{file("b", strings.Repeat("x", 1000))})[:800]
	if err := tree.Unpack(t.Context(), bytes.NewReader(cut), upTo(1<<20)); !errors.Is(err, ErrArchive) {
		t.Errorf("an archive that was cut off: %v", err)
	}
	if err := tree.Unpack(t.Context(), strings.NewReader(strings.Repeat("no tar ", 100)), upTo(1<<20)); !errors.Is(err, ErrArchive) {
		t.Errorf("what is no archive: %v", err)
	}
}

// A tar.Reader takes what stops between two entries for a whole archive.
func TestAnArchiveWithoutItsEndIsRefused(t *testing.T) {
	whole := archive(t, []entry{file("a", strings.Repeat("x", 1000))})
	for _, size := range []int{0, 3 * 512, 4 * 512} { // nothing, without its end, with half of it
		tree, _ := emptyTree(t)
		err := tree.Unpack(t.Context(), bytes.NewReader(whole[:size]), upTo(1<<20))
		if !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%d bytes of it: %v", size, err)
		}
	}
	tree, _ := emptyTree(t)
	if err := tree.Unpack(t.Context(), bytes.NewReader(whole), upTo(1<<20)); err != nil {
		t.Errorf("the whole: %v", err)
	}
}

func TestRightsOfOthersAreNotUnpacked(t *testing.T) {
	tree, dir := emptyTree(t)
	e := file("a", "x")
	e.Mode = 0o6777
	if err := tree.Unpack(t.Context(), bytes.NewReader(archive(t, []entry{e})), upTo(1<<20)); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "a")); err != nil || st.Mode() != 0o777 {
		t.Errorf("the file's mode is %v, %v", st.Mode(), err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, []entry{file("a/b", "x"), link("a/c", "../../x"), file("../x", "x")}))
	f.Add(archive(f, []entry{link("a", "/"), file("a/tmp/canary", "x")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, dir := emptyTree(t)
		_ = tree.Unpack(t.Context(), bytes.NewReader(b), upTo(1<<20))
		around, err := os.ReadDir(filepath.Dir(dir))
		if err != nil || len(around) != 2 {
			t.Errorf("beside the workspace there are %v, %v", around, err)
		}
		var again bytes.Buffer
		if err := tree.Pack(t.Context(), ".", Tar, &again); err != nil {
			t.Errorf("what was unpacked cannot be packed: %v", err)
		}
	})
}

// The holes of a file are not in the archive. What they unpack to counts.
func TestAnArchiveOfHolesIsOutOfProportion(t *testing.T) {
	tree, dir := emptyTree(t)
	// A file of 256 MiB with a byte at its end, as GNU tar has it.
	const size, last = 256 << 20, 256<<20 - 1
	sparse := fmt.Sprintf("1\n%d\n1\n", last)
	block := func(b []byte) []byte { return append(b, make([]byte, (512-len(b)%512)%512)...) }
	var records strings.Builder
	for _, kv := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=holes", fmt.Sprintf("GNU.sparse.realsize=%d", size)} {
		n := len(kv) + 2
		for n != len(fmt.Sprintf("%d %s\n", n, kv)) {
			n = len(fmt.Sprintf("%d %s\n", n, kv))
		}
		fmt.Fprintf(&records, "%d %s\n", n, kv)
	}
	content := append(block([]byte(sparse)), 'x')
	var b bytes.Buffer
	b.Write(header(t, tar.Header{Name: "x", Typeflag: 'x', Size: int64(records.Len())}))
	b.Write(block([]byte(records.String())))
	b.Write(header(t, tar.Header{Name: "holes", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}))
	b.Write(block(content))
	b.Write(make([]byte, 1024))
	for name, unpack := range map[string]func() error{
		"tar": func() error { return tree.Unpack(t.Context(), bytes.NewReader(b.Bytes()), upTo(1<<30)) },
		"tar.gz": func() error {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write(b.Bytes())
			_ = w.Close()
			return tree.UnpackGzip(t.Context(), &packed, upTo(1<<30))
		},
	} {
		if err := unpack(); !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), "times as many") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: there is %v, %v", name, left, err)
		}
	}
}

// header is one entry's, as it is in a tar, of types as well that a writer does not write.
func header(t *testing.T, h tar.Header) []byte {
	t.Helper()
	b := make([]byte, 512)
	copy(b, h.Name)
	copy(b[100:], fmt.Sprintf("%07o\x00", h.Mode))
	copy(b[124:], fmt.Sprintf("%011o\x00", h.Size))
	copy(b[136:], fmt.Sprintf("%011o\x00", 0))
	b[156] = h.Typeflag
	copy(b[257:], "ustar\x0000")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// The folders of an archive are kept in mind until its end, under names that compress well.
func TestTheNamesOfAnArchivesFoldersAreBounded(t *testing.T) {
	const folders = 40
	parent := strings.Repeat(strings.Repeat("d", 200)+"/", 15)
	all := make([]entry, folders)
	for i := range all {
		all[i] = entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("%s%d/", parent, i), Mode: 0o755}}
	}
	for name, most := range map[string]int{"too long": folders * 15 * 200, "short enough": folders * 16 * 201} {
		t.Run(name, func(t *testing.T) {
			tree, _ := emptyTree(t)
			u := unpacker{tree: tree, reserve: upTo(1 << 30), dirs: map[string]folder{}, names: most}
			var err error
			for i := range all {
				err = errors.Join(err, u.entry(&all[i].Header), u.entry(&all[i].Header)) // one that comes again is the same
			}
			if tooLong := name == "too long"; errors.Is(err, ErrArchive) != tooLong || (err != nil) != tooLong {
				t.Errorf("got %v", err)
			}
			if n := len(u.dirs); n > folders || n < folders/2 {
				t.Errorf("it keeps %d folders in mind", n)
			}
		})
	}
}

// TestAnEmptyFileOfAnArchiveCostsLittle counts the memory that each entry takes: an archive of some KB has many.
func TestAnEmptyFileOfAnArchiveCostsLittle(t *testing.T) {
	const entries = 2000
	var all []entry
	for i := range entries {
		all = append(all, file(fmt.Sprintf("d%d/f%d", i/1000, i), ""))
	}
	from := bytes.NewReader(archive(t, all))
	tree, dir := emptyTree(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := tree.Unpack(t.Context(), from, upTo(1<<20)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / entries; each > 8<<10 {
		t.Errorf("an empty file took %d bytes", each)
	}
	if made, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(made) != entries {
		t.Errorf("%d files, %v", len(made), err)
	}
}
