package builtin

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/media"
)

// binarySniffed is the part of a file that shows whether it is text, in bytes.
const binarySniffed = 4 << 10

// isBinary reports whether data is no text in any encoding: it has NUL bytes, begins as a binary format does, or has
// many control characters among bytes that are not UTF-8. Latin-1 has none of these.
func isBinary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 || format(data) != "" {
		return true
	}
	head := data[:min(len(data), binarySniffed)]
	if isText(head) {
		return false
	}
	controls := 0
	for _, b := range head {
		if b < ' ' && !bytes.ContainsRune([]byte("\a\b\t\n\v\f\r\x1b"), rune(b)) || b == 0x7f {
			controls++
		}
	}
	return controls*50 > len(head)
}

// isText reports whether a part of a file is UTF-8. It may end within a character.
func isText(head []byte) bool {
	for i := range min(len(head), utf8.UTFMax) {
		if end := len(head) - i; utf8.Valid(head[:end]) && (i == 0 || !utf8.FullRune(head[end:])) {
			return true
		}
	}
	return len(head) == 0
}

// isPicture reports whether data begins as a picture that Read shows. Every such picture has NUL bytes.
func isPicture(data []byte) bool {
	is := media.Type(data)
	return bytes.IndexByte(data, 0) >= 0 && slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, is)
}

// formats are binary formats by their first bytes, beside those of media.Type.
var formats = []struct{ begins, name string }{
	{"\x7fELF", "a program or library (ELF)"},
	{"MZ", "a program or library of Windows"},
	{"\xca\xfe\xba\xbe", "a Java class or a program of macOS"},
	{"\xcf\xfa\xed\xfe", "a program of macOS"},
	{"SQLite format 3\x00", "a SQLite database"},
	{"BZh", "bzip2 data"},
	{"\xfd7zXZ\x00", "xz data"},
	{"\x28\xb5\x2f\xfd", "zstd data"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"!<arch>\n", "an archive of object files or a Debian package"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document of the old format"},
	{"PAR1", "a Parquet file"},
	{"%PDF-", "a PDF"},
	{"\x80\x04\x95", "a pickle of Python"},
}

// format returns the binary format in which data begins; empty if it is not known.
func format(data []byte) string {
	for _, f := range formats {
		if !bytes.HasPrefix(data, []byte(f.begins)) {
			continue
		}
		if f.begins == "%PDF-" || !isText(data[:min(len(data), binarySniffed)]) || bytes.IndexByte(data, 0) >= 0 { // a text may begin so, too
			return f.name
		}
	}
	is, _, _ := strings.Cut(media.Type(data), ";")
	switch {
	case is == "application/x-gzip":
		return is
	case bytes.IndexByte(data, 0) < 0, strings.HasPrefix(is, "text/"), is == "application/octet-stream":
		return ""
	}
	return is
}

// notText says what a file is that Read cannot show, how large it is, and how to look at it.
func notText(file string, got piece) string {
	name := filename.Show(file)
	if bytes.HasPrefix(got.data, []byte("\xff\xfe")) || bytes.HasPrefix(got.data, []byte("\xfe\xff")) {
		return fmt.Sprintf("%s is text in UTF-16 (%d bytes), which Read does not show. Look at it with Bash: iconv -f UTF-16 -t UTF-8 %s", name, got.size, quoted(file))
	}
	is := format(got.data)
	if is == "" {
		is = "binary data"
	}
	return fmt.Sprintf("%s is not text but %s, of %d bytes; Read cannot show it. Look at it with Bash: %s", name, is, got.size, lookAt(file, is))
}

// lookAt returns a command that shows a file of a format.
func lookAt(file, is string) string {
	f := quoted(file)
	switch {
	case is == "a PDF":
		return "pdftotext " + f + " - | head -n 200"
	case is == "application/zip":
		return "unzip -l " + f
	case is == "application/x-gzip" && (strings.HasSuffix(file, ".tgz") || strings.HasSuffix(file, ".tar.gz")):
		return "tar -tzf " + f
	case is == "application/x-gzip":
		return "zcat " + f + " | head -n 50"
	case is == "bzip2 data":
		return "bzcat " + f + " | head -n 50"
	case is == "xz data":
		return "xzcat " + f + " | head -n 50"
	case is == "a SQLite database":
		return "sqlite3 " + f + " .schema"
	}
	return "file " + f + "; xxd " + f + " | head -n 20"
}

// quoted returns a path as an argument of a shell.
func quoted(file string) string {
	if file != "" && !strings.ContainsFunc(file, func(r rune) bool {
		return !strings.ContainsRune("/._-+,=@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) && !strings.HasPrefix(path.Base(file), "-") {
		return file
	}
	return "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
}
