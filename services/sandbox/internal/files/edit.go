package files

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxEditBytes is the largest file that can be edited.
const MaxEditBytes = 16 << 20

// Edit replaces a part of a text.
type Edit struct {
	Old, New string
	All      bool
}

// EditError reports which edit could not be made.
type EditError struct {
	Index int
	Found int    // how often its text occurs: 0, or more than one
	Why   string // what may keep it from being found; empty if unknown
}

func (e *EditError) Error() string {
	if e.Found == 0 && e.Why != "" {
		return fmt.Sprintf("edit %d: the text to replace is not in the file: %s", e.Index, e.Why)
	}
	if e.Found == 0 {
		return fmt.Sprintf("edit %d: the text to replace is not in the file: read the file and copy the text exactly, with its white space", e.Index)
	}
	return fmt.Sprintf("edit %d: the text to replace is in the file %d times: add lines around it to make it unique, or replace all", e.Index, e.Found)
}

// Edited is the result of edits of a file.
type Edited struct {
	Content      []byte
	Etag         string // of the file before; empty if there was none
	Replacements []int32
	Snippet      string
	FirstLine    int64
}

// Edit applies all edits to the content of a file, or none. It writes nothing.
func (t *Tree) Edit(name string, edits []Edit) (Edited, error) {
	name, err := Clean(name)
	if err != nil {
		return Edited{}, err
	}
	old, st, err := t.all(name, MaxEditBytes)
	missing := errors.Is(err, ErrNotFound)
	if err != nil && (!missing || edits[0].Old != "") {
		return Edited{}, err
	}
	e := Edited{}
	if !missing {
		e.Etag = newInfo(name, &st).Etag
	}
	if e.Content, e.Replacements, err = Apply(name, old, edits); err != nil {
		return Edited{}, err
	}
	e.Snippet, e.FirstLine = snippet(old, e.Content)
	return e, nil
}

// Apply makes the edits, each on the result of the previous one. Other bytes of the content stay unchanged.
func Apply(name string, content []byte, edits []Edit) ([]byte, []int32, error) {
	counts, encoded := make([]int32, 0, len(edits)), findEncoding(content)
	for i, e := range edits {
		if e.Old == "" {
			if i > 0 {
				return nil, nil, &EditError{Index: i}
			}
			if len(content) > 0 {
				return nil, nil, fmt.Errorf("%w: %s is not empty, so an edit without a text to replace cannot create it", ErrExists, name)
			}
			content = []byte(e.New)
			counts = append(counts, 1)
			continue
		}
		if err := encoded.accepts(name, e); err != nil {
			return nil, nil, err
		}
		r := newReplacement(content, e)
		switch n := r.found(); {
		case n == 0:
			return nil, nil, &EditError{Index: i, Why: r.whyMissing()}
		case n > 1 && !e.All:
			return nil, nil, &EditError{Index: i, Found: n}
		default:
			counts = append(counts, int32(n))
			if grown := int64(len(content)) + int64(n)*(r.longest()-int64(len(e.Old))); grown > MaxEditBytes {
				return nil, nil, fmt.Errorf("%w: the edited %s would have %d bytes, more than %d", ErrTooLarge, name, grown, MaxEditBytes)
			}
		}
		content = r.make()
	}
	if len(content) > MaxEditBytes {
		return nil, nil, tooLarge(name, MaxEditBytes)
	}
	return content, counts, nil
}

func tooLarge(name string, limit int64) error {
	return fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, name, limit)
}

// Bounds of a snippet.
const (
	snippetAround = 4 // lines before and after
	snippetLines  = 200
	snippetBytes  = 16 << 10
)

// snippet returns the lines of after that differ from before, with some lines around them, and the number
// of the first one.
func snippet(before, after []byte) (string, int64) {
	prefix := 0
	for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(before), len(after))-prefix && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
		suffix++
	}
	start, end := prefix, len(after)-suffix
	first := int64(bytes.Count(after[:start], []byte{'\n'})) + 1
	start = bytes.LastIndexByte(after[:start], '\n') + 1
	for range snippetAround {
		if start == 0 {
			break
		}
		start = bytes.LastIndexByte(after[:start-1], '\n') + 1
		first--
	}
	for range snippetAround + 1 {
		next := bytes.IndexByte(after[end:], '\n')
		if next < 0 {
			end = len(after)
			break
		}
		end += next + 1
	}
	return bounded(after[start:end]), first
}

func bounded(b []byte) string {
	if len(b) > snippetBytes {
		b = b[:snippetBytes]
	}
	end := 0
	for range snippetLines {
		next := bytes.IndexByte(b[end:], '\n')
		if next < 0 {
			end = len(b)
			break
		}
		end += next + 1
	}
	return string(bytes.ToValidUTF8(b[:end], []byte("\uFFFD")))
}
