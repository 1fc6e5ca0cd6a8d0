package files

import (
	"bytes"
	"slices"
	"strings"
)

// replacement makes one edit of a content. The edit and the file may differ only in line ends: models write
// LF, whatever the file has.
type replacement struct {
	Edit
	content []byte
	// text is the searched text: the content, or the content with LF for each line end. In the second case
	// at maps its places to the content.
	text []byte
	at   position
	ends lineEnds
	// origin has for each line of the new text the line of the old one whose end it takes; nil until it is needed.
	origin []int
}

func newReplacement(content []byte, e Edit) *replacement {
	ends := findLineEnds(content)
	r := &replacement{Edit: ends.unify(content, e), content: content, text: content, ends: ends}
	e = r.Edit
	if strings.Contains(e.Old, "\n") && !strings.Contains(e.Old, "\r") {
		r.text = r.ends.fold(content)
	}
	r.at = position{content: content, same: len(r.text) == len(content)}
	return r
}

// found returns how often the text to replace occurs. Overlapping places also count, because they make a
// single replacement ambiguous.
func (r *replacement) found() int {
	old := []byte(r.Old)
	n := bytes.Count(r.text, old)
	if n == 1 && !r.All {
		if first := bytes.Index(r.text, old); bytes.Contains(r.text[first+1:], old) {
			return 2
		}
	}
	return n
}

// longest returns the largest length of the new text.
func (r *replacement) longest() int64 {
	if r.verbatim() || r.ends.single != crlf && !r.ends.mixed {
		return int64(len(r.New))
	}
	return int64(len(r.New) + strings.Count(r.New, "\n"))
}

// verbatim reports whether the new text is inserted unchanged.
func (r *replacement) verbatim() bool {
	return !strings.Contains(r.New, "\n") || strings.Contains(r.Old, "\r") || strings.Contains(r.New, "\r")
}

// make returns the content with every place replaced, from the first on.
func (r *replacement) make() []byte {
	var out bytes.Buffer
	old, copied := []byte(r.Old), 0
	for from := 0; ; {
		i := bytes.Index(r.text[from:], old)
		if i < 0 {
			break
		}
		begin, end := r.at.to(from+i), r.at.to(from+i+len(old))
		out.Write(r.content[copied:begin])
		out.WriteString(r.textAt(begin, end))
		copied, from = end, from+i+len(old)
	}
	out.Write(r.content[copied:])
	return out.Bytes()
}

// textAt returns the new text for a place, with the line ends of that place.
func (r *replacement) textAt(begin, end int) string {
	if r.verbatim() {
		return r.New
	}
	ends := r.ends.of(r.content, begin, end)
	first := ends[0]
	if !slices.ContainsFunc(ends, func(e string) bool { return e != first }) {
		return strings.ReplaceAll(r.New, lf, first)
	}
	if r.origin == nil {
		r.origin = align(strings.Split(r.Old, lf), strings.Split(r.New, lf))
	}
	var b strings.Builder
	line := 0
	for text := range strings.SplitAfterSeq(r.New, lf) {
		if kept, ended := strings.CutSuffix(text, lf); ended {
			text = kept + ends[r.origin[line]]
		}
		b.WriteString(text)
		line++
	}
	return b.String()
}

// Line ends.
const (
	lf   = "\n"
	crlf = "\r\n"
	cr   = "\r"
)

// lineEnds describes the line ends of a content.
type lineEnds struct {
	single string // of every line, unless mixed
	mixed  bool   // some are LF, some CR LF
	last   int    // where the last LF is; -1 if there is none
	next   int    // place of the next LF that near found
}

// findLineEnds finds the line ends of a content. A CR alone is a line end only in a content without LF.
func findLineEnds(content []byte) lineEnds {
	e := lineEnds{single: lf, last: bytes.LastIndexByte(content, '\n'), next: -1}
	if e.last < 0 {
		if bytes.IndexByte(content, '\r') >= 0 {
			e.single = cr
		}
		return e
	}
	switch n := bytes.Count(content, []byte(crlf)); n {
	case 0:
	case bytes.Count(content, []byte(lf)):
		e.single = crlf
	default:
		e.mixed = true
	}
	return e
}

// unify writes an edit with LF if only its old text has the line ends of the content, such
// as one that was copied with them. An edit of nothing but line ends stays as it is, and so
// does every edit where a CR is not always a line end.
func (e *lineEnds) unify(content []byte, edit Edit) Edit {
	if e.mixed || e.single == lf || !strings.Contains(edit.Old, cr) || strings.Contains(edit.New, cr) {
		return edit
	}
	if e.single == crlf && bytes.Count(content, []byte(cr)) != bytes.Count(content, []byte(crlf)) {
		return edit
	}
	same := edit
	same.Old = strings.ReplaceAll(edit.Old, e.single, lf)
	if before, ends := strings.CutSuffix(same.Old, cr); ends { // the place ends within a line end
		same.Old, same.New = before+lf, edit.New+lf
	}
	if strings.Contains(same.Old, cr) || same.Old == same.New {
		return edit
	}
	return same
}

// fold returns a content with LF for each line end.
func (e *lineEnds) fold(content []byte) []byte {
	switch {
	case e.single == cr:
		return bytes.ReplaceAll(content, []byte(cr), []byte(lf))
	case e.single == crlf || e.mixed:
		return bytes.ReplaceAll(content, []byte(crlf), []byte(lf))
	}
	return content
}

// of returns the ends of the lines that a place has a part of. Successive calls need increasing places.
func (e *lineEnds) of(content []byte, begin, end int) (all []string) {
	if !e.mixed {
		return []string{e.single}
	}
	for at := begin; ; {
		i := bytes.IndexByte(content[at:end], '\n')
		if i < 0 {
			return append(all, e.after(content, end))
		}
		all = append(all, endAt(content, at+i))
		at += i + 1
	}
}

// after returns the next line end after a place, or else the last one.
func (e *lineEnds) after(content []byte, end int) string {
	if e.next < end {
		if e.next = len(content); end <= e.last {
			e.next = end + bytes.IndexByte(content[end:], '\n')
		}
	}
	if e.next < len(content) {
		return endAt(content, e.next)
	}
	return endAt(content, e.last)
}

func endAt(content []byte, i int) string {
	if i > 0 && content[i-1] == '\r' {
		return crlf
	}
	return lf
}

// position maps places of a folded content to the content. Successive calls need increasing places.
type position struct {
	content         []byte
	same            bool // they are the same
	folded, through int
}

// to returns the place in the content for a place in the folded one.
func (p *position) to(folded int) int {
	if p.same {
		return folded
	}
	for p.folded < folded {
		left := folded - p.folded
		i := bytes.Index(p.content[p.through:min(len(p.content), p.through+left+1)], []byte(crlf))
		if i < 0 {
			p.folded, p.through = folded, p.through+left
			break
		}
		p.folded, p.through = p.folded+i+1, p.through+i+2
	}
	return p.through
}
