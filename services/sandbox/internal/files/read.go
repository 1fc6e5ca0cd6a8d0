package files

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// chunk is the largest piece of data.
const chunk = 256 << 10

// Lines is a part of a file, in lines.
type Lines struct {
	First, Count int64 // from 1 on; a zero count means to the end
	MaxLine, Max int64 // bytes of one line, and in all; zero means no limit
}

// End is what a part in lines left out.
type End struct {
	Lines int64 // lines sent
	Cut   int64 // of these, how many were cut
	More  bool
}

// Reader is an open regular file. The caller must close it.
type Reader struct {
	Info Info
	src  io.ReadSeekCloser
}

// Read opens a regular file for reading.
func (t *Tree) Read(name string) (*Reader, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, err
	}
	f, st, err := t.regular(name)
	if err != nil {
		return nil, err
	}
	return &Reader{Info: newInfo(name, &st), src: f}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.src.Close() }

// Bytes sends a part of the file; a limit of zero means to its end. It reads up to the file's size when it
// was opened, so that it also ends for a growing file.
func (r *Reader) Bytes(offset, limit int64, send func([]byte) error) error {
	if offset >= r.Info.Size {
		return nil
	}
	if _, err := r.src.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if left := r.Info.Size - offset; limit == 0 || limit > left {
		limit = left
	}
	src, buffer := io.LimitReader(r.src, limit), make([]byte, min(chunk, limit))
	for {
		n, err := io.ReadFull(src, buffer)
		if n > 0 {
			if err := send(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Lines sends a part of the file in lines. It holds only one piece in memory, however long a line is.
func (r *Reader) Lines(part Lines, send func([]byte) error) (End, error) {
	l := &lineSender{part: part, src: bufio.NewReaderSize(io.LimitReader(r.src, r.Info.Size), 64<<10), send: send}
	for skip := max(part.First, 1) - 1; skip > 0; skip-- {
		if ended, err := l.skipLine(); ended || err != nil {
			return l.end, err
		}
	}
	for part.Count == 0 || l.end.Lines < part.Count {
		if _, err := l.src.Peek(1); err != nil {
			return l.end, errors.Join(ignoreEOF(err), l.flush())
		}
		if part.Max > 0 && l.sent >= part.Max {
			break
		}
		if err := l.line(); err != nil {
			return l.end, err
		}
	}
	_, err := l.src.Peek(1)
	l.end.More = err == nil
	return l.end, errors.Join(ignoreEOF(err), l.flush())
}

type lineSender struct {
	part    Lines
	src     *bufio.Reader
	send    func([]byte) error
	pending []byte
	sent    int64
	end     End
}

// skipLine skips a line and reports whether the file ended.
func (l *lineSender) skipLine() (bool, error) {
	for {
		_, err := l.src.ReadSlice('\n')
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, io.EOF):
			return true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return true, err
		}
	}
}

// line sends one line, cut at a limit. A cut line keeps its line feed.
func (l *lineSender) line() error {
	room := int64(-1) // no limit
	if l.part.MaxLine > 0 {
		room = l.part.MaxLine
	}
	if left := l.part.Max - l.sent; l.part.Max > 0 && (room < 0 || left < room) {
		room = left
	}
	cut, feed := false, false
	for {
		piece, err := l.src.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if err == nil {
			feed, piece = true, piece[:len(piece)-1]
		}
		if room >= 0 && int64(len(piece)) > room {
			cut = true
			piece = wholeRunes(piece[:room])
			room = 0
		} else if room >= 0 {
			room -= int64(len(piece))
		}
		if err := l.put(piece); err != nil {
			return err
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	l.end.Lines++
	if cut {
		l.end.Cut++
	}
	if feed {
		return l.put([]byte{'\n'})
	}
	return nil
}

// wholeRunes removes a partial character at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		last := b[len(b)-i:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

func (l *lineSender) put(b []byte) error {
	l.sent += int64(len(b))
	l.pending = append(l.pending, b...)
	if len(l.pending) < chunk {
		return nil
	}
	return l.flush()
}

func (l *lineSender) flush() error {
	if len(l.pending) == 0 {
		return nil
	}
	err := l.send(l.pending)
	l.pending = l.pending[:0]
	return err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// all reads a whole regular file of a limited size.
func (t *Tree) all(name string, limit int64) ([]byte, unix.Stat_t, error) {
	f, st, err := t.regular(name)
	if err != nil {
		return nil, st, err
	}
	defer func() { _ = f.Close() }()
	if st.Size > limit {
		return nil, st, tooLarge(name, limit)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = tooLarge(name, limit)
	}
	return raw, st, err
}
