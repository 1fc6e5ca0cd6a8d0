package files

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"
)

// maxEffort limits the matching effort. A pattern may take its whole size for each byte of a text. A more
// costly search takes a slower way that ends when the search is cancelled.
const maxEffort = 1 << 26

// maxSpanEffort is the same for matches that may span lines. Such a search cannot be cancelled, so the rest
// of the text is left out.
const maxSpanEffort = 1 << 30

// find returns where the pattern first matches in a text, or -1 if it does not or the search is over.
func (p *pattern) find(ctx context.Context, text []byte) int {
	if ctx.Err() != nil {
		return -1
	}
	if len(text) <= maxEffort/p.size {
		if m := p.re.FindIndex(text); m != nil {
			return m[0]
		}
		return -1
	}
	m := p.re.FindReaderIndex(&cancellableText{ctx: ctx, text: text})
	if m == nil || ctx.Err() != nil {
		return -1
	}
	return m[0]
}

// cancellableText reads a text until a search is over.
type cancellableText struct {
	ctx  context.Context //nolint:containedctx // lives as long as one look at a text
	text []byte
	read int
}

// ReadRune implements io.RuneReader.
func (p *cancellableText) ReadRune() (rune, int, error) {
	if p.read++; p.read%1024 == 0 && p.ctx.Err() != nil {
		p.text = nil
	}
	if len(p.text) == 0 {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRune(p.text)
	p.text = p.text[n:]
	return r, n, nil
}

// pieceBytes is roughly how much text is searched between two checks whether the search is over.
const pieceBytes = 64 << 10

// inLines is find for a pattern that matches within lines, in a text that begins with a line.
func (p *pattern) inLines(ctx context.Context, text []byte) int {
	for at := 0; at < len(text) && ctx.Err() == nil; {
		end := len(text)
		if from := at + pieceBytes; from < end {
			if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
				end = from + i + 1
			}
		}
		hit := p.find(ctx, text[at:end])
		if hit >= 0 && (at+hit < end || end == len(text)) { // a match at the end belongs to the next line
			return at + hit
		}
		at = end
	}
	return -1
}
