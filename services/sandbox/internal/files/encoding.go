package files

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// encoding describes a content that is not valid UTF-8.
type encoding struct {
	utf16   bool
	invalid bool // some bytes are not UTF-8
	wide    bool // some characters have several bytes: it is UTF-8 with faults
	marked  bool // it contains U+FFFD itself
}

func findEncoding(content []byte) encoding {
	e := encoding{utf16: bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff"))}
	if e.invalid = !utf8.Valid(content); !e.invalid {
		return e
	}
	e.marked = bytes.Contains(content, []byte("\uFFFD"))
	for at := 0; at < len(content) && !e.wide; {
		_, size := utf8.DecodeRune(content[at:])
		e.wide, at = size > 1, at+size
	}
	return e
}

// accepts refuses an edit that would mix encodings in a file, or that would write the replacement marks that
// Read shows for invalid bytes.
func (e encoding) accepts(name string, edit Edit) error {
	switch {
	case e.utf16:
		return fmt.Errorf("%w: %s is UTF-16: convert it first, with iconv -f UTF-16 -t UTF-8", ErrNotText, name)
	case !e.invalid:
		return nil
	case !e.marked && strings.Contains(edit.Old+edit.New, "\uFFFD"):
		return fmt.Errorf("%w: %s has bytes that are not UTF-8, which are shown as U+FFFD (%s): leave them out of the text to replace and of the new one", ErrNotText, name, "\uFFFD")
	case !e.wide && isWide(edit.New):
		return fmt.Errorf("%w: %s is not UTF-8, perhaps Latin-1: it takes ASCII only, or convert it first, with iconv -t UTF-8", ErrNotText, name)
	}
	return nil
}

// normalizable is the largest content that is searched in another Unicode form.
const normalizable = 1 << 20

// whyMissing returns what may keep the text to replace from being found; empty if unknown.
func (r *replacement) whyMissing() string {
	switch {
	case bytes.IndexByte(r.content, 0) >= 0:
		return "the file has NUL bytes: it is not text, or not UTF-8"
	case len(r.content) > normalizable:
		return ""
	case isWide(r.Old) && bytes.Contains(norm.NFC.Bytes(r.content), norm.NFC.Bytes([]byte(r.Old))):
		return "the file has it in another Unicode form: a letter and its accent are one character there and two here, or the other way round"
	}
	return almost(r.text, r.Old)
}
