package skill

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

const manifest = "---\nname: pdf\ndescription: Fills in forms.\n---\n\n# How\n\nRun scripts/fill.sh.\n"

var small = Limits{Bytes: 64 << 10, Files: 10}

// entry is an entry of an archive.
type entry struct {
	name, content string
	mode          fs.FileMode
}

func good() []entry {
	return []entry{{"SKILL.md", manifest, 0o600}, {"scripts/fill.sh", "#!/bin/sh\n", 0o700}, {"ref.md", "more", 0o644}}
}

func zipped(t *testing.T, all ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range all {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t *testing.T, all ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, e := range all {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Typeflag: tar.TypeReg, Size: int64(len(e.content))}
		switch {
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, e.content
		case e.mode&fs.ModeIrregular != 0:
			h.Typeflag, h.Size, h.Linkname = tar.TypeLink, 0, e.content
		case e.mode&fs.ModeDevice != 0:
			h.Typeflag, h.Size = tar.TypeBlock, 0
		case e.mode&fs.ModeNamedPipe != 0:
			h.Typeflag, h.Size = tar.TypeFifo, 0
		case e.mode.IsDir():
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheSameFilesGiveTheSameTarHoweverTheyArrive(t *testing.T) {
	var wrapped []entry
	for _, e := range slices.Backward(good()) {
		wrapped = append(wrapped, entry{"any-folder/" + e.name, e.content, e.mode | 0o022})
	}
	junk := append(good(), entry{"__MACOSX/._SKILL.md", "x", 0o644}, entry{".DS_Store", "x", 0o644}, entry{"ref/", "", 0o755 | fs.ModeDir})
	dir := t.TempDir()
	for _, e := range good() {
		at := filepath.Join(dir, e.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(e.content), e.mode)); err != nil {
			t.Fatal(err)
		}
	}
	digests := map[string]string{}
	add := func(how string, f *Folder, err error) {
		if err != nil {
			t.Errorf("%s: %v", how, err)
			return
		}
		if f.Name != "pdf" || f.Description != "Fills in forms." || f.Body != "# How\n\nRun scripts/fill.sh." || f.Count() != 3 {
			t.Errorf("%s: %+v, %d files", how, f.Manifest, f.Count())
		}
		archive, digest := f.Pack()
		digests[digest] = how
		h, err := tar.NewReader(bytes.NewReader(archive)).Next()
		if err != nil || h.Name != "SKILL.md" || h.Mode != 0o644 {
			t.Errorf("%s begins with %+v, %v", how, h, err)
		}
	}
	for how, archive := range map[string][]byte{
		"zip": zipped(t, good()...), "tar.gz": tarred(t, good()...), "in a folder": zipped(t, wrapped...), "tar.gz in a folder": tarred(t, wrapped...), "with junk": zipped(t, junk...),
	} {
		f, err := Read(archive, small)
		add(how, f, err)
	}
	f, err := ReadDir(dir, small)
	add("folder", f, err)
	if len(digests) != 1 {
		t.Errorf("there are several digests: %v", digests)
	}
}

func TestAnArchiveThatIsNoSkillIsRefusedByTheNameOfItsFault(t *testing.T) {
	with := func(e ...entry) []entry { return append(good(), e...) }
	many := good()
	for n := range 20 {
		many = append(many, entry{fmt.Sprintf("f%d", n), "", 0o644})
	}
	md := func(text string) []byte { return zipped(t, entry{"SKILL.md", text, 0o644}) }
	front := func(text string) []byte { return md("---\n" + text + "\n---\nbody") }
	for name, c := range map[string]struct {
		archive    []byte
		file, want string
	}{
		"no archive":                     {[]byte("hello"), "", "neither a zip nor a tar.gz"},
		"nothing":                        {nil, "", "neither a zip"},
		"a cut zip":                      {zipped(t, good()...)[:200], "", "damaged"},
		"a cut tar.gz":                   {tarred(t, good()...)[:100], "", "damaged"},
		"a zip with a link":              {zipped(t, with(entry{"link", "/etc/passwd", 0o777 | fs.ModeSymlink})...), "link", "a link or a device"},
		"a tar with a link":              {tarred(t, with(entry{"link", "/etc/passwd", 0o777 | fs.ModeSymlink})...), "link", "a link or a device"},
		"a tar with a hard link":         {tarred(t, with(entry{"hard", "SKILL.md", fs.ModeIrregular})...), "hard", "a link or a device"},
		"a device":                       {tarred(t, with(entry{"disk", "", fs.ModeDevice})...), "disk", "a link or a device"},
		"a pipe":                         {tarred(t, with(entry{"pipe", "", fs.ModeNamedPipe})...), "pipe", "a link or a device"},
		"a path that goes up":            {zipped(t, with(entry{"a/../../b", "x", 0o644})...), "a/../../b", "leads outside"},
		"a tar's path that goes up":      {tarred(t, with(entry{"../b", "x", 0o644})...), "../b", "leads outside"},
		"an absolute path":               {zipped(t, with(entry{"/etc/x", "x", 0o644})...), "/etc/x", "relative"},
		"a tar's absolute path":          {tarred(t, with(entry{"/etc/x", "x", 0o644})...), "/etc/x", "relative"},
		"an absolute folder":             {tarred(t, with(entry{"/etc/", "", 0o755 | fs.ModeDir})...), "/etc", "relative"},
		"an empty part":                  {zipped(t, with(entry{"a//b", "x", 0o644})...), "a//b", "empty part"},
		"a backslash":                    {zipped(t, with(entry{`a\b`, "x", 0o644})...), `a\b`, "backslash"},
		"a line feed":                    {zipped(t, with(entry{"a\nb", "x", 0o644})...), `"a\nb"`, "control character"},
		"a direction mark":               {zipped(t, with(entry{"a\u202eb", "x", 0o644})...), `"a\u202eb"`, "invisible"},
		"no UTF-8":                       {tarred(t, with(entry{"a\xff", "x", 0o644})...), "\"a\\xff\"", "not UTF-8"},
		"a home":                         {zipped(t, with(entry{"~/x", "x", 0o644})...), "~/x", "relative"},
		"a long name":                    {zipped(t, with(entry{strings.Repeat("n", 201), "x", 0o644})...), strings.Repeat("n", 120) + "…", "more than 200 bytes"},
		"a long path":                    {zipped(t, with(entry{strings.Repeat("n/", 300) + "f", "x", 0o644})...), strings.Repeat("n/", 60) + "…", "more than 500 bytes"},
		"a file twice":                   {zipped(t, with(entry{"ref.md", "x", 0o644})...), "ref.md", "twice"},
		"a file that is a folder, too":   {zipped(t, with(entry{"ref.md/x", "x", 0o644})...), "ref.md", "a file and a folder"},
		"a bomb in a zip":                {zipped(t, with(entry{"big", strings.Repeat("0", 1<<20), 0o644})...), "", "more than 65536 bytes"},
		"a bomb in a tar":                {tarred(t, with(entry{"big", strings.Repeat("0", 8<<20), 0o644})...), "", "more than"},
		"a bomb in many parts":           {zipped(t, with(entry{"a", strings.Repeat("0", 40<<10), 0o644}, entry{"b", strings.Repeat("0", 40<<10), 0o644})...), "", "more than 65536 bytes"},
		"too many files":                 {zipped(t, many...), "", "may have 10 files"},
		"too large an archive":           {make([]byte, 8<<20), "", "may have"},
		"no SKILL.md":                    {zipped(t, entry{"README.md", "x", 0o644}), "SKILL.md", "missing"},
		"a SKILL.md that is too deep":    {zipped(t, entry{"a/b/SKILL.md", manifest, 0o644}), "SKILL.md", "missing"},
		"a skill.md":                     {zipped(t, entry{"skill.md", manifest, 0o644}), "SKILL.md", "capital letters"},
		"a binary SKILL.md":              {md("---\nname: a\x00\n---\n"), "SKILL.md", "not UTF-8 text"},
		"no front matter":                {md("# How\n"), "SKILL.md", "does not begin with front matter"},
		"front matter without an end":    {md("---\nname: a\n"), "SKILL.md", "does not end"},
		"front matter that is no YAML":   {front("name: [a"), "SKILL.md", "not valid YAML"},
		"front matter of another form":   {front("- name"), "SKILL.md", "not valid YAML"},
		"no name":                        {front("description: x"), "SKILL.md", "name is missing"},
		"no description":                 {front("name: a"), "SKILL.md", "description is missing"},
		"a name with capitals":           {front("name: PDF\ndescription: x"), "SKILL.md", "not a name"},
		"a name with a slash":            {front("name: a/../b\ndescription: x"), "SKILL.md", "not a name"},
		"a name that begins with a dash": {front("name: -a\ndescription: x"), "SKILL.md", "not a name"},
		"a long name of a skill":         {front("name: " + strings.Repeat("a", 65) + "\ndescription: x"), "SKILL.md", "not a name"},
		"a long description":             {front("name: a\ndescription: " + strings.Repeat("x", 1025)), "SKILL.md", "more than 1024 characters"},
		"a description that escapes":     {front("name: a\ndescription: \"x\\e[2J\""), "SKILL.md", "control character"},
		"too much front matter":          {front("name: a\ndescription: x\nmore: " + strings.Repeat("x", 17<<10)), "SKILL.md", "more than 16384 bytes"},
		"aliases that explode":           {front("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nname: a\ndescription: *f"), "SKILL.md", "YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.archive, small)
			var is *Error
			if !errors.As(err, &is) || len(is.Faults) == 0 {
				t.Fatalf("%v", err)
			}
			if f := is.Faults[0]; f.File != c.file || !strings.Contains(f.Text, c.want) {
				t.Errorf("%q: %s, want %q: %s", f.File, f.Text, c.file, c.want)
			}
		})
	}
}

func TestALargeManifestIsRefused(t *testing.T) {
	archive := zipped(t, entry{"SKILL.md", manifest + strings.Repeat("x", maxManifest), 0o644})
	if _, err := Read(archive, Limits{Bytes: 1 << 20, Files: 1}); err == nil || !strings.Contains(err.Error(), "may have 131072") {
		t.Error(err)
	}
}

func TestAllFaultsOfAManifestAreNamed(t *testing.T) {
	_, err := Read(zipped(t, entry{"SKILL.md", "---\nname: A B\nallowed-tools: [" + strings.Repeat("x", 300) + "]\n---\n", 0o644}), small)
	for _, want := range []string{"not a name", "description is missing", "allowed-tools"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestToolsAreAListOrText(t *testing.T) {
	for text, want := range map[string][]string{
		"allowed-tools: Read, Bash(git add *) Grep": {"Read", "Bash(git add *)", "Grep"},
		"allowed-tools: [Read, \"Bash(a, b)\"]":     {"Read", "Bash(a, b)"},
		"license: MIT":                              nil,
	} {
		f, err := Read(zipped(t, entry{"SKILL.md", "---\r\nname: a\r\ndescription: >\r\n  two\r\n  lines\r\n" + text + "\r\n---\r\nbody", 0o644}), small)
		if err != nil || !slices.Equal(f.AllowedTools, want) || f.Description != "two lines" || f.Body != "body" {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
}

// The operator's folder changes, and a session that began before keeps what it began with.
func TestTheOperatorsSkillsAreKeptAsTheyWere(t *testing.T) {
	objects, err := objectstore.Open("file://"+t.TempDir(), objectstore.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(folder, text string) {
		at := filepath.Join(dir, folder)
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "SKILL.md"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("pdf", manifest)
	c := Defaults()
	c.Dir = dir
	l, err := Open(t.Context(), c, objects)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := l.Global("pdf")
	write("pdf", strings.Replace(manifest, "# How", "# Now", 1))
	if l, err = Open(t.Context(), c, objects); err != nil {
		t.Fatal(err)
	}
	if text, err := l.Instructions(t.Context(), "acme", agent.Skill{Name: "pdf", Digest: was.Digest}); err != nil || !strings.HasPrefix(text, "# How") {
		t.Errorf("it was %q, %v", text, err)
	}
	is, _ := l.Global("pdf")
	if text, err := l.Instructions(t.Context(), "acme", agent.Skill{Name: "pdf", Digest: is.Digest}); err != nil || !strings.HasPrefix(text, "# Now") {
		t.Errorf("it is %q, %v", text, err)
	}
	for _, gone := range []agent.Skill{{Name: "pdf", Digest: strings.Repeat("0", 64)}, {Name: "pdf", Store: "../../skills", Digest: is.Digest}} {
		if _, err := l.Instructions(t.Context(), "acme", gone); !errors.Is(err, ErrGone) {
			t.Errorf("%+v: %v", gone, err)
		}
	}
	write("other", manifest)
	write("bad", "no front matter")
	l, err = Open(t.Context(), c, objects)
	if err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprint(l.Faults())
	if len(l.Globals()) != 1 || len(l.Faults()) != 2 || !strings.Contains(told, "skills.dir: other: SKILL.md: name is \"pdf\"") || !strings.Contains(told, "skills.dir: bad: SKILL.md: it does not begin") {
		t.Errorf("beside faulty folders there are %v, and the faults are %s", l.Globals(), told)
	}
	if _, err := Open(t.Context(), c, nil); !errors.Is(err, ErrNoStore) {
		t.Errorf("without a store: %v", err)
	}
}

func TestInvisibleCharactersInFrontMatterAreLeftOut(t *testing.T) {
	for name, text := range map[string]string{
		"a byte order mark":               "\ufeff---\nname: a\ndescription: d e\n---\nbody",
		"two byte order marks":            "\ufeff\ufeff---\nname: a\ndescription: d e\n---\nbody",
		"a no-break space after a key":    "---\nname:\u00a0a\ndescription:\u00a0d\u00a0e\n---\nbody",
		"a no-break space after the line": "---\u00a0\nname: a\ndescription: d e\n---\u00a0 \nbody",
		"zero width in a name":            "---\nname: a\u200b\ndescription: d\u200d e\u2060\n---\nbody",
		"zero width before a key":         "---\n\u200bname: a\n\ufeffdescription: d e\n\u200b---\nbody",
		"ideographic and thin spaces":     "---\nname:\u3000a\ndescription: d\u2009e\n---\nbody",
		"empty lines before it":           "\n \u00a0\n---\nname: a\ndescription: d e\n---\nbody",
		"line ends of old programs":       "---\rname: a\rdescription: d e\r---\rbody",
		"spaces after the lines":          "---  \nname: a  \ndescription: d e\t\n---\t\nbody",
		"a soft hyphen":                   "---\nname: a\u00ad\ndescription: d e\n---\nbody",
	} {
		m, err := parse([]byte(text))
		if err != nil || m.Name != "a" || m.Description != "d e" || m.Body != "body" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	m, err := parse([]byte("---\nname: a\ndescription: |\n  d\n  ---\n  e\n---\nbody\u00a0\u200bx"))
	if err != nil || m.Description != "d --- e" || m.Body != "body\u00a0\u200bx" {
		t.Errorf("lines within a value, and the body: %+v, %v", m, err)
	}
}

func FuzzRead(f *testing.F) {
	var t testing.T
	f.Add(zipped(&t, good()...))
	f.Add(tarred(&t, good()...))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		folder, err := Read(archive, small)
		if err != nil {
			var is *Error
			if !errors.As(err, &is) {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		for name := range folder.files {
			if err := checkName(name); err != nil {
				t.Fatal(err)
			}
		}
		packed, digest := folder.Pack()
		again, err := Read(packed, small)
		if err != nil {
			t.Fatalf("its own tar cannot be read: %v", err)
		}
		if _, same := again.Pack(); same != digest {
			t.Fatal("it gives another tar")
		}
	})
}
