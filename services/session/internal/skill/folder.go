// Package skill reads skills and keeps their files. A skill is a folder with a SKILL.md, whose front matter
// names and describes it. It arrives as an archive of a client, which is not trusted, and is kept as a tar of
// its own making: the same files always give the same bytes, and the tar's digest names them.
package skill

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bound one skill.
type Limits struct {
	Bytes int64 // of its files together
	Files int   // and folders
}

// Fault is a rule that a skill breaks.
type Fault struct {
	File string // in the folder; empty: the archive itself
	Text string
}

// Error says which rules an archive or folder breaks.
type Error struct{ Faults []Fault }

// Error lists the faults.
func (e *Error) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		if texts[i] = f.Text; f.File != "" {
			texts[i] = f.File + ": " + f.Text
		}
	}
	return strings.Join(texts, "; ")
}

func broken(file, format string, args ...any) error {
	return &Error{[]Fault{{file, fmt.Sprintf(format, args...)}}}
}

// File is a file of a skill.
type File struct {
	Content    []byte
	Executable bool
}

// Folder is a skill.
type Folder struct {
	Manifest
	files map[string]File
}

// manifestName is the file that makes a folder a skill.
const manifestName = "SKILL.md"

// junk are files that programs of desktops leave in archives.
var junk = []string{".DS_Store", "Thumbs.db", "desktop.ini"}

const (
	// maxName and maxPath bound the names of files, in bytes.
	maxName = 200
	maxPath = 500
)

// builder collects the files of an archive or folder.
type builder struct {
	limits Limits
	bytes  int64
	files  map[string]File
}

func newBuilder(l Limits) *builder { return &builder{limits: l, files: map[string]File{}} }

// checkName refuses a path that is not plainly one of a file in the folder. Names end up in prompts and
// commands of agents.
func checkName(name string) error {
	shown := clip(name)
	switch {
	case name == "" || path.IsAbs(name) || strings.HasPrefix(name, "~"):
		return broken(shown, "a path is relative to the folder")
	case !utf8.ValidString(name):
		return broken(shown, "a name is not UTF-8")
	case strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }):
		return broken(shown, "a name has a backslash, a control character or an invisible one")
	case len(name) > maxPath:
		return broken(shown, "the path has more than %d bytes", maxPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return broken(shown, "the path leads outside of the folder")
		case part == "" || part == ".":
			return broken(shown, "the path has an empty part")
		case len(part) > maxName:
			return broken(shown, "a name has more than %d bytes", maxName)
		}
	}
	return nil
}

// clip shortens a name for a message, and makes it printable.
func clip(name string) string {
	if len(name) > 120 {
		cut := 120
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// skipped reports whether a file does not belong to the skill.
func skipped(name string) bool {
	return strings.HasPrefix(name, "__MACOSX/") || slices.Contains(junk, path.Base(name)) || strings.HasPrefix(path.Base(name), "._")
}

// add reads a file of the folder.
func (b *builder) add(name string, executable bool, from io.Reader) error {
	if err := checkName(name); err != nil {
		return err
	}
	if skipped(name) {
		return nil
	}
	if _, again := b.files[name]; again {
		return broken(clip(name), "the archive has it twice")
	}
	if len(b.files) >= b.limits.Files {
		return broken("", "a skill may have %d files", b.limits.Files)
	}
	left := b.limits.Bytes - b.bytes
	content, err := io.ReadAll(io.LimitReader(from, left+1))
	if int64(len(content)) > left {
		return broken("", "its files have more than %d bytes, which a skill may have", b.limits.Bytes)
	}
	if err != nil {
		return broken(clip(name), "it cannot be unpacked: %v", err)
	}
	b.bytes += int64(len(content))
	b.files[name] = File{content, executable}
	return nil
}

// finish returns the skill. The files may lie in one folder of the archive.
func (b *builder) finish() (*Folder, error) {
	files := b.files
	if _, ok := files[manifestName]; !ok {
		files = unwrapped(files)
	}
	m, ok := files[manifestName]
	if !ok {
		return nil, broken(manifestName, "it is missing: a skill has it in its folder, in capital letters")
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, taken := files[dir]; taken {
				return nil, broken(clip(dir), "it is a file and a folder")
			}
		}
	}
	manifest, err := parse(m.Content)
	if err != nil {
		return nil, err
	}
	return &Folder{*manifest, files}, nil
}

// unwrapped returns the files of the only folder that holds all of them.
func unwrapped(files map[string]File) map[string]File {
	top, inner := "", map[string]File{}
	for name, f := range files {
		dir, rest, ok := strings.Cut(name, "/")
		if top = cmp.Or(top, dir); !ok || dir != top {
			return nil
		}
		inner[rest] = f
	}
	return inner
}

// Size returns how many bytes the files have together.
func (f *Folder) Size() (n int64) {
	for _, x := range f.files {
		n += int64(len(x.Content))
	}
	return n
}

// Count returns the number of files.
func (f *Folder) Count() int { return len(f.files) }

// Pack returns the skill's tar and its SHA-256. SKILL.md comes first.
func (f *Folder) Pack() (archive []byte, digest string) {
	names := slices.SortedFunc(maps.Keys(f.files), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		x := f.files[name]
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(x.Content)), Typeflag: tar.TypeReg}
		if x.Executable {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err) // the names were checked, and the writer is memory
		}
		if _, err := w.Write(x.Content); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(sum[:])
}

func rank(name string) int {
	if name == manifestName {
		return 0
	}
	return 1
}
