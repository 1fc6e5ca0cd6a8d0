package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether v, a reader or writer, is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colors reports whether to use colors on w: it is a terminal, and neither
// NO_COLOR nor TERM=dumb is set.
func Colors(w io.Writer, getenv func(string) string) bool {
	return IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// style is written around a text when there are colors.
type style string

const (
	dim    style = "2"
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (r *Renderer) style(s style, text string) string {
	if !r.options.Colors || s == "" || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
