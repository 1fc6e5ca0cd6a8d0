package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// errFileDone ends the search of one file.
var errFileDone = errors.New("enough of this file")

// scan searches one file after the other and reuses its buffer.
type scan struct {
	*grep
	ctx context.Context //nolint:containedctx // of the current file
	job *grepJob

	pattern *pattern // a clone of its own
	buffer  []byte
	piece   []GrepMatch // matches to be passed on
	sent    int
	count   int64
	from    int         // where the match begins in the line, in a search whose matches may span lines
	before  []GrepMatch // lines that may become context
	after   int         // lines still to be sent as context
}

// search searches a file and closes it. A file that cannot be read is left out.
func (s *scan) search(ctx context.Context, g *grep, j *grepJob) {
	defer close(j.found)
	f := &rawFile{fd: j.fd}
	defer f.close()
	if ctx.Err() != nil {
		return
	}
	*s = scan{grep: g, ctx: ctx, job: j, pattern: s.pattern, buffer: s.buffer, before: s.before[:0]}
	if err := s.content(f); err != nil {
		return // the search is over, or the file is done
	}
	if s.q.Mode == GrepCount && s.count > 0 {
		_ = s.emit(GrepMatch{Path: j.name, Count: s.count})
	}
	_ = s.flush()
}

func (s *scan) content(f *rawFile) error {
	text, err := s.read(f)
	if err != nil || bytes.IndexByte(text[:min(len(text), binarySniffed)], 0) >= 0 {
		return nil //nolint:nilerr // it cannot be read
	}
	switch {
	case s.q.Multiline:
		s.job.more = int64(len(text)) < s.job.size
		err = s.spans(text)
	case int64(len(text)) < s.job.size:
		err = s.lines(bufio.NewReaderSize(io.MultiReader(bytes.NewReader(text), io.LimitReader(f, s.job.size-int64(len(text)))), 64<<10))
	default:
		err = s.text(text)
	}
	return ignoreDone(err)
}

// read reads a file, up to maxGrepWhole; of a binary file only the beginning.
func (s *scan) read(f *rawFile) ([]byte, error) {
	want := int(min(s.job.size, maxGrepWhole))
	if cap(s.buffer) < want {
		s.buffer = make([]byte, max(want, 128<<10))
	}
	text := s.buffer[:0]
	for len(text) < want {
		limit := want
		if len(text) == 0 {
			limit = min(want, 128<<10)
		}
		n, err := f.Read(s.buffer[len(text):limit])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		sniffed := len(text) > 0
		text = s.buffer[:len(text)+n]
		if !sniffed && bytes.IndexByte(text[:min(n, binarySniffed)], 0) >= 0 {
			return text, nil
		}
	}
	return text, nil
}

// rawFile is an open file. It replaces os.File, which would ask the kernel whether it can be polled.
type rawFile struct{ fd int }

func (f *rawFile) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(f.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (f *rawFile) close() { _ = unix.Close(f.fd) }

// text searches a whole file for matching lines.
func (s *scan) text(text []byte) error {
	number := int64(1)
	for at := 0; at < len(text); {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		start, end := s.pattern.next(s.ctx, text, at)
		if start < 0 {
			return s.between(text[at:], number, false)
		}
		if err := s.between(text[at:start], number, true); err != nil {
			return err
		}
		number += int64(bytes.Count(text[at:start], newline))
		if err := s.line(number, text[start:end], true); err != nil {
			return err
		}
		at, number = end+1, number+1
	}
	return nil
}

var newline = []byte{'\n'}

// next returns the next matching line, from the beginning of a line on, or -1 if there is none or the
// search is over.
func (p *pattern) next(ctx context.Context, text []byte, at int) (start, end int) {
	for at < len(text) && ctx.Err() == nil {
		var hit int
		if p.needle != nil {
			hit = p.needle.index(text[at:])
		} else {
			hit = p.inLines(ctx, text[at:])
		}
		if hit < 0 || at+hit == len(text) && text[len(text)-1] == '\n' { // no line follows the last line feed
			return -1, -1
		}
		start, end = at+bytes.LastIndexByte(text[at:at+hit], '\n')+1, len(text)
		if i := bytes.IndexByte(text[at+hit:], '\n'); i >= 0 {
			end = at + hit + i
		}
		if p.needle == nil || p.plain || p.find(ctx, text[start:end]) >= 0 {
			return start, end
		}
		at = end + 1
	}
	return -1, -1
}

// between handles the lines between matches: those that may be context of the previous match, and of the
// next one if next is set.
func (s *scan) between(text []byte, number int64, next bool) error {
	for s.after > 0 && len(text) > 0 {
		line, rest, _ := bytes.Cut(text, newline)
		if err := s.line(number, line, false); err != nil {
			return err
		}
		text, number = rest, number+1
	}
	if !next || s.q.Before == 0 || s.q.Mode != GrepLines {
		return nil
	}
	from := len(text)
	for range s.q.Before {
		if from > 0 {
			from = bytes.LastIndexByte(text[:from-1], '\n') + 1
		}
	}
	number += int64(bytes.Count(text[:from], newline))
	for text = text[from:]; len(text) > 0; number++ {
		line, rest, _ := bytes.Cut(text, newline)
		if err := s.line(number, line, false); err != nil {
			return err
		}
		text = rest
	}
	return nil
}

// lines searches a file line by line that is too large to be read at once.
func (s *scan) lines(src *bufio.Reader) error {
	var line []byte
	for number := int64(1); ; number++ {
		if number%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		var err error
		if line, err = readLine(src, line[:0]); err != nil {
			return ignoreEOF(err)
		}
		if err := s.line(number, line, s.pattern.match(s.ctx, line)); err != nil {
			return err
		}
	}
}

// match reports whether a line matches.
func (p *pattern) match(ctx context.Context, line []byte) bool {
	if p.needle != nil && p.needle.index(line) < 0 {
		return false
	}
	return p.plain || p.find(ctx, line) >= 0
}

// readLine reads the searched part of a line, without its line feed.
func readLine(src *bufio.Reader, line []byte) ([]byte, error) {
	for {
		piece, err := src.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && (!errors.Is(err, io.EOF) || len(piece)+len(line) == 0) {
			return line, err
		}
		ended := err == nil || errors.Is(err, io.EOF)
		if err == nil {
			piece = piece[:len(piece)-1]
		}
		line = append(line, piece[:min(len(piece), max(0, maxGrepLine-len(line)))]...)
		if ended {
			return line, nil
		}
	}
}

// spans searches a file for matches that may span lines. Every line that a match touches counts as
// matching.
func (s *scan) spans(text []byte) error {
	if n := s.pattern.needle; n != nil && n.index(text) < 0 {
		return nil
	}
	if most := maxSpanEffort / s.pattern.size; len(text) > most {
		text, s.job.more = text[:most], true
	}
	all := s.pattern.re.FindAllIndex(text, maxGrepMatches)
	s.job.more = s.job.more || len(all) == maxGrepMatches
	// touches reports whether a match touches a line; lines come in order.
	touches := func(start, end int) bool {
		for len(all) > 0 && all[0][0] < start && all[0][1] <= start {
			all = all[1:]
		}
		if len(all) == 0 || all[0][0] > end {
			return false
		}
		s.from = max(all[0][0]-start, 0)
		return true
	}
	for number, start := int64(1), 0; start < len(text); number++ {
		if number%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		end := len(text)
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i
		}
		if err := s.line(number, text[start:end], touches(start, end)); err != nil {
			return err
		}
		start = end + 1
	}
	return nil
}

// line handles the next line and sends the resulting matches.
func (s *scan) line(number int64, text []byte, match bool) error {
	if match {
		s.count++
		switch s.q.Mode {
		case GrepFiles:
			if err := s.emit(GrepMatch{Path: s.job.name}); err != nil {
				return err
			}
			return errFileDone
		case GrepCount:
			return nil
		}
	}
	if s.q.Mode != GrepLines {
		return nil
	}
	m := s.excerpt(text, match)
	m.Line = number
	switch {
	case match:
		for _, b := range s.before {
			if err := s.emit(b); err != nil {
				return err
			}
		}
		s.before, s.after = s.before[:0], s.q.After
		return s.emit(m)
	case s.after > 0:
		s.after--
		return s.emit(m)
	case s.q.Before > 0:
		if len(s.before) == s.q.Before {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, m)
	}
	return nil
}

// excerpt returns a line, or the part of a long line around its match.
func (s *scan) excerpt(text []byte, match bool) GrepMatch {
	m := GrepMatch{Path: s.job.name, Context: !match}
	begin, end := 0, len(text)
	if end > maxGrepText {
		if match {
			begin = min(max(s.place(text)-maxGrepText/4, 0), len(text)-maxGrepText)
		}
		for end = begin + maxGrepText; begin > 0 && begin < end && !utf8.RuneStart(text[begin]); {
			begin++
		}
		for least := end - utf8.UTFMax; end > least && end < len(text) && !utf8.RuneStart(text[end]); {
			end--
		}
	}
	m.Text, m.CutBefore, m.CutAfter = bytes.Clone(text[begin:end]), int64(begin), int64(len(text)-end)
	return m
}

// place returns where the match begins in a matching line.
func (s *scan) place(text []byte) int {
	switch {
	case s.q.Multiline:
		return s.from
	case s.pattern.plain:
		return s.pattern.needle.index(text)
	}
	return s.pattern.find(s.ctx, text)
}

// emit passes a match on. One match beyond the maximum shows that there is more.
func (s *scan) emit(m GrepMatch) error {
	s.piece = append(s.piece, m)
	s.sent++
	if s.sent > s.q.Max {
		return errFileDone
	}
	if len(s.piece) < grepPiece {
		return nil
	}
	return s.flush()
}

func (s *scan) flush() error {
	if len(s.piece) == 0 {
		return nil
	}
	select {
	case s.job.found <- s.piece:
		s.piece = nil
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func ignoreDone(err error) error {
	if errors.Is(err, errFileDone) {
		return nil
	}
	return err
}
