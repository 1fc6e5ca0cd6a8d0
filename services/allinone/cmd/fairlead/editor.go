package main

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// editor reads lines of a person at a terminal, who can edit them with arrow keys and get back earlier ones. It reads
// only a line that was asked for, so what is typed during a turn stays with the terminal until then.
type editor struct {
	lines chan string
	want  chan string // the prompt of the line that is asked for
	open  bool        // a line is asked for and has not come; only for the conversation
	fd    int
	kept  *unix.Termios
}

// newEditor returns an editor if input and messages are a terminal, else nil. The caller closes it. Its goroutine ends
// with ctx or its input: the reading of a terminal cannot be given up.
func newEditor(ctx context.Context, s stdio) *editor {
	in, ok := s.in.(*os.File)
	if !ok || !terminal.IsTerminal(s.in) || !terminal.IsTerminal(s.err) {
		return nil
	}
	kept, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil
	}
	e := &editor{lines: make(chan string), want: make(chan string, 1), fd: int(in.Fd()), kept: kept}
	go e.run(ctx, in, s.err)
	return e
}

// run reads a line for each prompt.
func (e *editor) run(ctx context.Context, in io.Reader, out io.Writer) {
	defer close(e.lines)
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
		case e.lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// read reads a line. Meanwhile the terminal hands on each key, except those that stop a program.
func (e *editor) read(t *term.Terminal) (string, error) {
	keys := *e.kept
	keys.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	keys.Iflag &^= unix.ICRNL
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(e.fd, setTermios, &keys); err != nil {
		return "", err
	}
	defer e.close()
	if width, height, err := term.GetSize(e.fd); err == nil && width > 0 {
		_ = t.SetSize(width, height) // the terminal shows the rest at the next key
	}
	return t.ReadLine()
}

// close gives the terminal back as it was.
func (e *editor) close() { _ = unix.IoctlSetTermios(e.fd, setTermios, e.kept) } // a terminal that is gone needs nothing

// ask asks for a line, unless one is asked for already. It reports whether it shows the prompt.
func (e *editor) ask(prompt string) bool {
	if e.open {
		return false
	}
	e.open = true
	e.want <- prompt
	return true
}

// slowReader reads byte for byte, so that nothing behind a line is read with it.
type slowReader struct{ io.Reader }

// Read implements io.Reader.
func (r slowReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }
