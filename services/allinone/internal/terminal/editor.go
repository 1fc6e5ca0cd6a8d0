package terminal

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Editor reads lines of a person at a terminal, who can edit them with arrow keys and get back earlier ones. It reads
// only a line that was asked for, so what is typed during a turn stays with the terminal until then.
type Editor struct {
	Lines chan string
	want  chan string // the prompt of the line that is asked for
	Open  bool        // a line is asked for and has not come; only for the caller of Ask
	fd    int
	kept  *unix.Termios
}

// NewEditor returns an editor if input and messages are a terminal, else nil. The caller closes it. Its goroutine ends
// with ctx or its input: the reading of a terminal cannot be given up.
func NewEditor(ctx context.Context, from io.Reader, out io.Writer) *Editor {
	in, ok := from.(*os.File)
	if !ok || !IsTerminal(from) || !IsTerminal(out) {
		return nil
	}
	kept, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil
	}
	e := &Editor{Lines: make(chan string), want: make(chan string, 1), fd: int(in.Fd()), kept: kept}
	go e.run(ctx, in, out)
	return e
}

// run reads a line for each prompt.
func (e *Editor) run(ctx context.Context, in io.Reader, out io.Writer) {
	defer close(e.Lines)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{slowReader{in}, out}, "")
	for {
		select {
		case prompt := <-e.want:
			t.SetPrompt(prompt)
		case <-ctx.Done():
			return
		}
		line, err := e.read(t)
		if err != nil {
			return
		}
		select {
		case e.Lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// read reads a line. Meanwhile the terminal hands on each key, except those that stop a program.
func (e *Editor) read(t *term.Terminal) (string, error) {
	keys := *e.kept
	keys.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	keys.Iflag &^= unix.ICRNL
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(e.fd, setTermios, &keys); err != nil {
		return "", err
	}
	defer e.Close()
	if width, height, err := term.GetSize(e.fd); err == nil && width > 0 {
		_ = t.SetSize(width, height) // the terminal shows the rest at the next key
	}
	return t.ReadLine()
}

// Close gives the terminal back as it was.
func (e *Editor) Close() { _ = unix.IoctlSetTermios(e.fd, setTermios, e.kept) } // a terminal that is gone needs nothing

// Ask asks for a line, unless one is asked for already. It reports whether it shows the prompt.
func (e *Editor) Ask(prompt string) bool {
	if e.Open {
		return false
	}
	e.Open = true
	e.want <- prompt
	return true
}

// slowReader reads byte for byte, so that nothing behind a line is read with it.
type slowReader struct{ io.Reader }

// Read implements io.Reader.
func (r slowReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }
