package files

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/bomb"
)

// bombs are small archives of so many MiB of zeros.
var bombs = map[Format]func(testing.TB, int) []byte{TarGzip: bomb.TarGzip, Zip: bomb.Zip}

func TestABombIsRefusedBeforeItTakesTheDisk(t *testing.T) {
	for _, format := range []Format{TarGzip, Zip} {
		t.Run(formatNames[format], func(t *testing.T) {
			tree, dir := emptyTree(t)
			if err := unpackAs(t.Context(), tree, format, bombs[format](t, 80), upTo(1<<40)); !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), "200 times") {
				t.Errorf("out of proportion: %v", err)
			}
			if err := unpackAs(t.Context(), tree, format, bombs[format](t, 2), upTo(1<<20)); err == nil || errors.Is(err, ErrArchive) {
				t.Errorf("too large: %v", err)
			}
			if err := unpackAs(t.Context(), tree, format, bombs[format](t, 2), upTo(1<<30)); err != nil {
				t.Errorf("small enough: %v", err)
			}
			if info, err := os.Stat(filepath.Join(dir, bomb.Name)); err != nil || info.Size() != 2<<20 {
				t.Errorf("small enough: %v, %v", info, err)
			}
		})
	}
}

// patch changes bytes behind the last place where mark is.
func patch(b []byte, mark string, offset int, to ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[bytes.LastIndex(b, []byte(mark))+offset:], to)
	return b
}

func TestAZipThatLiesIsRefused(t *testing.T) {
	const end, directory, local = "PK\x05\x06", "PK\x01\x02", "PK\x03\x04"
	text := strings.Repeat("text ", 1000)
	plain := archiveAs(t, Zip, []entry{file("a", text)})
	many := make([]entry, 1001)
	for i := range many {
		many[i] = file(strings.Repeat("a", i%200+1)+"/"+string(rune('a'+i/200)), "")
	}
	for name, b := range map[string][]byte{
		"more entries than there may be":     archiveAs(t, Zip, many),
		"a directory that claims to be huge": patch(plain, end, 12, 0, 0, 0, 0xf0),
		"entries that claim to be many":      patch(plain, end, 10, 0xfe, 0xff),
		"a size that is a lie, too small":    patch(plain, directory, 24, 1, 0, 0, 0),
		"a size that is a lie, too large":    patch(plain, directory, 24, 0, 0, 0xff, 0),
		"a packed size beyond the archive":   patch(plain, directory, 20, 0, 0, 0xff, 0),
		"content that was changed":           patch(plain, local, 31+6, 0xff, 0xff, 0xff),
		"an unknown method":                  patch(plain, directory, 10, 99),
		"an encrypted entry":                 patch(plain, directory, 8, 1),
		"half of it":                         plain[:len(plain)/2],
		"nothing":                            nil,
		"the end alone, of 64 bits":          append([]byte("PK\x06\x07\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00PK\x05\x06"), bytes.Repeat([]byte{0xff}, 18)...),
	} {
		t.Run(name, func(t *testing.T) {
			tree, _ := emptyTree(t)
			if err := unpackAs(t.Context(), tree, Zip, b, upTo(1<<30)); !errors.Is(err, ErrArchive) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// countedAt counts what is read.
type countedAt struct {
	io.ReaderAt
	bytes int
}

func (c *countedAt) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	c.bytes += n
	return n, err
}

// directoryOf is a zip's directory of so many entries, with names of so many bytes.
func directoryOf(entries, name int) []byte {
	header := make([]byte, 46+name)
	copy(header, "PK\x01\x02")
	binary.LittleEndian.PutUint16(header[28:], uint16(name))
	return bytes.Repeat(header, entries)
}

// endOf is a zip's end that says where its directory is, and how large.
func endOf(entries uint16, length, at uint32) []byte {
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(end[8:], entries)
	binary.LittleEndian.PutUint16(end[10:], entries)
	binary.LittleEndian.PutUint32(end[12:], length)
	binary.LittleEndian.PutUint32(end[16:], at)
	return end
}

// end64Of is the end of a large zip whose end is at a place. The short end behind it has
// to refer to it.
func end64Of(entries, length, at, place uint64) []byte {
	b := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	binary.LittleEndian.PutUint64(b[24:], entries)
	binary.LittleEndian.PutUint64(b[32:], entries)
	binary.LittleEndian.PutUint64(b[40:], length)
	binary.LittleEndian.PutUint64(b[48:], at)
	b = append(b, "PK\x06\x07\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, place)
	return binary.LittleEndian.AppendUint32(b, 1)
}

// The end of a zip may say less than its directory holds: a reader of that continues as long
// as there are entries, and compares 16 bits of their number.
func TestNoMoreOfAZipsDirectoryIsReadThanThereMayBe(t *testing.T) {
	const most = 1000
	many, long := directoryOf(1<<16+1, 1), directoryOf(300, 60_000)
	before := []byte(strings.Repeat("before", 1000))
	for name, tc := range map[string]struct {
		parts [][]byte
		want  string
	}{
		"more entries than its end says":    {[][]byte{many, endOf(1, 47, 0)}, "more than 1000 entries"},
		"behind something else":             {[][]byte{before, many, endOf(1, uint32(len(many)), 0)}, "there may be 1000"},
		"behind something else, short":      {[][]byte{before, many, endOf(1, 47, uint32(len(before)))}, "more than 1000 entries"},
		"an end of 64 bits":                 {[][]byte{many, end64Of(1, 47, 0, uint64(len(many))), endOf(0xffff, 0xffffffff, 0xffffffff)}, "more than 1000 entries"},
		"an end of 64 bits, half of it":     {[][]byte{many, end64Of(1, 47, 0, uint64(len(many))), endOf(1, 0xffff, 0)}, "more than 1000 entries"},
		"an end of 64 bits that tells more": {[][]byte{many, end64Of(1<<16+1, 47, 0, uint64(len(many))), endOf(1, 0xffff, 0)}, "there may be 1000"},
		"longer than its end says":          {[][]byte{long, endOf(300, 47, 0)}, "larger than"},
		"entries to the very end":           {[][]byte{directoryOf(1, len(endOf(0, 0, 0)))[:46], endOf(1, 0, 0)}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := slices.Concat(tc.parts...)
			tree, _ := emptyTree(t)
			from := &countedAt{ReaderAt: bytes.NewReader(raw)}
			err := tree.UnpackZip(t.Context(), from, int64(len(raw)), most, upTo(1<<30))
			if !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if from.bytes > 2<<20 {
				t.Errorf("it read %d bytes of %d", from.bytes, len(raw))
			}
		})
	}
}

// As many entries as there may be are read, wherever the zip begins and whatever is in them.
func TestAZipOfAsManyEntriesAsThereMayBeIsUnpacked(t *testing.T) {
	all := make([]entry, 1000)
	for i := range all {
		all[i] = file(fmt.Sprintf("%04d", i), "PK\x01\x02")
	}
	plain := archiveAs(t, Zip, all)
	for name, b := range map[string][]byte{"alone": plain, "behind something else": append([]byte("#!/bin/sh\n"), plain...)} {
		t.Run(name, func(t *testing.T) {
			tree, dir := emptyTree(t)
			if err := unpackAs(t.Context(), tree, Zip, b, upTo(1<<30)); err != nil {
				t.Fatal(err)
			}
			if made, err := os.ReadDir(dir); err != nil || len(made) != len(all) {
				t.Errorf("%d files, %v", len(made), err)
			}
		})
	}
	const most = 70_000
	raw := append(directoryOf(most+1, 1), endOf(most+1-1<<16, 47, 0)...)
	tree, _ := emptyTree(t)
	err := tree.UnpackZip(t.Context(), bytes.NewReader(raw), int64(len(raw)), most, upTo(1<<30))
	if !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), "more than 70000 entries") {
		t.Errorf("one more: %v", err)
	}
}

func TestPartsOfAZipThatLieOverEachOtherAreRefused(t *testing.T) {
	// The directory names one part twice.
	one := archiveAs(t, Zip, []entry{file("a", strings.Repeat("0123456789", 1)+string(bytes.Repeat([]byte{1, 2, 3, 5, 7, 11}, 50)))})
	at := bytes.Index(one, []byte("PK\x01\x02"))
	end := bytes.Index(one, []byte("PK\x05\x06"))
	record := one[at:end]
	b := bytes.Clone(one[:end])
	for range 20 {
		again := bytes.Clone(record)
		again[46]++ // another name: there is one byte of it
		b = append(b, again...)
		record = again
	}
	b = append(b, one[end:]...)
	tail := bytes.LastIndex(b, []byte("PK\x05\x06"))
	binary.LittleEndian.PutUint16(b[tail+8:], 21)
	binary.LittleEndian.PutUint16(b[tail+10:], 21)
	binary.LittleEndian.PutUint32(b[tail+12:], uint32(tail-at))
	in, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(in.File) != 21 {
		t.Fatalf("the test's own archive is bad: %v", err)
	}
	if err := checkSizes(in, 100); !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("got %v", err)
	}
}

// TestOtherToolsUnderstandTheZip has the usual tools read what was packed, and the
// service what they pack.
func TestOtherToolsUnderstandTheZip(t *testing.T) {
	for _, tool := range []string{"zip", "unzip"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not on this machine: install it", tool)
			}
			t.Skipf("%s is not on this machine", tool)
		}
	}
	tree, dir := emptyTree(t)
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "d"), 0o750), os.WriteFile(filepath.Join(dir, "d", "run"), []byte("#!/bin/sh\n"), 0o755),
		os.Symlink("d/run", filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := tree.Pack(t.Context(), ".", Zip, &packed); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "ours.zip"), packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(work, "theirs")
	run(work, "unzip", "-q", "ours.zip", "-d", theirs)
	if st, err := os.Stat(filepath.Join(theirs, "d", "run")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("unzip made %v, %v", st, err)
	}
	if to, err := os.Readlink(filepath.Join(theirs, "link")); err != nil || to != "d/run" {
		t.Errorf("unzip made a link to %q, %v", to, err)
	}
	run(theirs, "zip", "-qry", "../theirs.zip", ".")
	raw, err := os.ReadFile(filepath.Join(work, "theirs.zip"))
	if err != nil {
		t.Fatal(err)
	}
	back, copied := emptyTree(t)
	if err := unpackAs(t.Context(), back, Zip, raw, upTo(1<<20)); err != nil {
		t.Fatal(err)
	}
	if want, got := wholeSeconds(inventory(t, theirs)), inventory(t, copied); got != want {
		t.Errorf("unpacked\n%s\nwant\n%s", got, want)
	}
}

func FuzzUnpackZip(f *testing.F) {
	f.Add(archiveAs(f, Zip, []entry{file("a/b", "x"), link("a/c", "../../x"), file("../x", "x")}))
	f.Add(archiveAs(f, Zip, []entry{link("a", "/"), file("a/tmp/canary", "x")}))
	f.Add(archiveAs(f, Zip, []entry{link("a", ".."), file("canary", strings.Repeat("x", 5000))}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, dir := emptyTree(t)
		_ = unpackAs(t.Context(), tree, Zip, b, upTo(1<<20))
		around, err := os.ReadDir(filepath.Dir(dir))
		if err != nil || len(around) != 2 {
			t.Errorf("beside the workspace there are %v, %v", around, err)
		}
		var again bytes.Buffer
		if err := tree.Pack(t.Context(), ".", Zip, &again); err != nil {
			t.Errorf("what was unpacked cannot be packed: %v", err)
		}
	})
}

func TestTimesThatAZipDoesNotHaveAreTheNearest(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"early": "", "late": ""})
	late, last := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxUint32, 0)
	must(t, os.Chtimes(dir+"/early", time.Unix(-1, 0), time.Unix(-1, 0)))
	must(t, os.Chtimes(dir+"/late", late, late))
	if st, err := os.Stat(dir + "/late"); err != nil || !st.ModTime().Equal(late) {
		t.Skip("the file system does not have them either")
	}
	var packed bytes.Buffer
	must(t, tree.Pack(t.Context(), ".", Zip, &packed))
	in, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	must(t, err)
	for i, want := range []time.Time{time.Unix(0, 0), last} {
		if f := in.File[i]; !f.Modified.Equal(want) {
			t.Errorf("%s is of %v, want %v", f.Name, f.Modified, want)
		}
	}
}
