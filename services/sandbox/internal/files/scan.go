package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errFileDone ends the search of one file.
var errFileDone = errors.New("enough of this file")

// scan searches one file.
type scan struct {
	*grep
	name   string
	count  int64
	before []GrepMatch // lines that may become context
	after  int         // lines that are still to be sent as context
}

// lines searches line by line.
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
		if err := s.line(number, line, s.re.Match(line)); err != nil {
			return ignoreDone(err)
		}
	}
}

// readLine reads a line without its line feed, as much of it as is looked at.
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

// whole searches a file at once, so that a match may span lines. Every line that a
// match touches is one that matches.
func (s *scan) whole(src *bufio.Reader) error {
	text, err := io.ReadAll(io.LimitReader(src, maxGrepWhole+1))
	if err != nil {
		return nil //nolint:nilerr // it cannot be read
	}
	if len(text) > maxGrepWhole {
		text, s.more = text[:maxGrepWhole], true
	}
	all := s.re.FindAllIndex(text, maxGrepMatches)
	s.more = s.more || len(all) == maxGrepMatches
	// touches says whether a match touches a line; lines come in order.
	touches := func(start, end int) bool {
		for len(all) > 0 && all[0][0] < start && all[0][1] <= start {
			all = all[1:]
		}
		return len(all) > 0 && all[0][0] <= end
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
			return ignoreDone(err)
		}
		start = end + 1
	}
	return nil
}

// line takes the next line and sends what it gives rise to.
func (s *scan) line(number int64, text []byte, match bool) error {
	if match {
		s.count++
		switch s.q.Mode {
		case GrepFiles:
			if err := s.emit(GrepMatch{Path: s.name}); err != nil {
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
	m := GrepMatch{Path: s.name, Line: number, Context: !match, Text: bytes.Clone(text[:min(len(text), maxGrepText)])}
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

func ignoreDone(err error) error {
	if errors.Is(err, errFileDone) {
		return nil
	}
	return err
}
