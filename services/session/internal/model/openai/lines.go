package openai

import (
	"bufio"
	"bytes"
	"io"
)

// lines reads the `data:` lines of a stream and leaves out all others.
type lines struct {
	io.Closer
	r    *bufio.Reader
	rest []byte
	err  error
	done *bool
}

func newLines(body io.ReadCloser, done *bool) *lines {
	return &lines{Closer: body, r: bufio.NewReader(body), done: done}
}

// Read gives bytes of data lines.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		line, l.err = l.r.ReadBytes('\n') // The watch bounds the whole stream, and so the line.
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok || l.err != nil && l.err != io.EOF { //nolint:errorlint // readers return io.EOF itself
			continue
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
			*l.done = true
		}
		l.rest = append(bytes.TrimRight(line, "\r\n"), '\n')
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
