package transcript

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// File is a valid transcript. It keeps the names of its messages, but not their
// content.
type File struct {
	// Session is the exported session, under its old name.
	Session *sessionv1.Session
	from    io.ReaderAt
	size    int64 // without the last line
	depth   map[string]int64
}

// Check validates a transcript of size bytes. Its work ends with the context. Its error is an *Error if the
// file is invalid; other errors are those of reading and of the context.
func Check(ctx context.Context, from io.ReaderAt, size int64) (*File, error) {
	last, length, err := readEnd(from, size)
	if err != nil {
		return nil, err
	}
	f := &File{from: from, size: size - length}
	sum := sha256.New()
	if _, err := io.Copy(sum, f.body()); err != nil {
		return nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != last.SHA256 {
		return nil, wrong(0, "the checksum in the last line does not match the file: the file was damaged or changed")
	}
	c := newChecker()
	for n, raw := range f.lines() {
		if err := cmp.Or(raw.err, ctx.Err()); err != nil {
			return nil, err
		}
		if err := c.line(n, raw.data); err != nil {
			return nil, err
		}
	}
	if err := c.finish(last); err != nil {
		return nil, err
	}
	f.Session, f.depth = c.session, c.depths()
	return f, nil
}

// readEnd reads the last line, and returns its length.
func readEnd(from io.ReaderAt, size int64) (end, int64, error) {
	tail := make([]byte, min(size, maxEnd))
	if _, err := from.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return end{}, 0, err
	}
	cutOff := wrong(0, "the last line is not the end of an export: the file was cut off, or is not an export")
	if len(tail) == 0 || tail[len(tail)-1] != '\n' {
		return end{}, 0, cutOff
	}
	begin := len(tail) - 1
	for begin > 0 && tail[begin-1] != '\n' {
		begin--
	}
	var last end
	if err := strict(tail[begin:], &last); err != nil || last.Type != typeEnd {
		return end{}, 0, cutOff
	}
	return last, int64(len(tail) - begin), nil
}

func (f *File) body() io.Reader { return io.NewSectionReader(f.from, 0, f.size) }

type rawLine struct {
	data []byte // until the next line
	err  error
}

// lines returns the lines except the last, counted from 1.
func (f *File) lines() iter.Seq2[int, rawLine] {
	return func(yield func(int, rawLine) bool) {
		s := bufio.NewScanner(f.body())
		s.Buffer(make([]byte, 64<<10), maxLine)
		n := 1
		for ; s.Scan(); n++ {
			if !yield(n, rawLine{data: s.Bytes()}) {
				return
			}
		}
		switch err := s.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(n, rawLine{err: wrong(n, "it is longer than %d bytes", maxLine)})
		case err != nil:
			yield(n, rawLine{err: err})
		}
	}
}

// Record is a turn, a message or an event of a File.
type Record struct {
	Turn    *sessionv1.Turn
	Message *sessionv1.Message
	Depth   int64 // the message's, 1 at the root
	Event   *sessionv1.Event
}

// Records returns the records of the file beside the session, with the names of
// another session, `sessions/{session}`. They may be ranged over more than
// once.
func (f *File) Records(session string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for n, raw := range f.lines() {
			if n <= 2 && raw.err == nil { // the header and the session
				continue
			}
			r, err := record{}, raw.err
			if err == nil {
				r, err = parse(n, raw.data)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			out := Record{Turn: r.turn, Message: r.message, Event: r.event}
			if r.message != nil {
				id, _ := ref{&r.message.Name, messages}.id(f.Session.Name)
				out.Depth = f.depth[id]
			}
			for _, name := range r.refs() {
				name.rename(f.Session.Name, session)
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// Head returns the id of the message at which the conversation stands; empty:
// none.
func (f *File) Head() string {
	id, _ := ref{&f.Session.Head, messages}.id(f.Session.Name)
	return id
}
