package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

const (
	// maxFound is how many files a glob returns.
	maxFound = 200
	// maxMatches bounds the text of a search.
	maxMatches = 100 << 10
)

type query struct{ Pattern, Path string }

// query reads the input of a search. A path of the whole workspace is empty.
func readQuery(c event) (q query, bad result, ok bool) {
	if bad, ok := input(c, &q); !ok {
		return q, bad, false
	}
	q.Path = filename.Parse(q.Path)
	if q.Path == "." {
		q.Path = ""
	}
	if q.Pattern == "" || strings.ContainsRune(q.Pattern+q.Path, 0) || len(q.Pattern) > maxPath || len(q.Path) > maxPath {
		return q, failed("The pattern is missing, or the pattern or the path contains a NUL character or is longer than %d bytes.", maxPath), false
	}
	return q, result{}, true
}

// glob finds files by their paths, the last changed first.
func (w *workspace) glob(ctx context.Context, c event) result {
	q, bad, ok := readQuery(c)
	if !ok {
		return bad
	}
	pattern := filename.ParsePattern(q.Pattern)
	if rest, ok := strings.CutPrefix(pattern, root+"/"); ok && q.Path == "" {
		pattern = rest
	}
	if strings.HasPrefix(pattern, "/") || slices.Contains(strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{},", r) }), "..") {
		return failed("The pattern must be relative, without `..`. Give the directory in path.")
	}
	got, err := w.files.GlobFiles(ctx, &sandboxv1.GlobFilesRequest{Session: w.session, Pattern: pattern, Path: q.Path, MaxResults: maxFound})
	if err != nil {
		return refused(ctx, err, shown(q.Path))
	}
	var b strings.Builder
	for _, f := range got.GetFiles() {
		b.WriteString(shown(f.GetPath()) + "\n")
	}
	switch {
	case b.Len() == 0:
		return done("no matches")
	case got.GetTruncated():
		b.WriteString("[There are more files. Use a narrower pattern or path.]\n")
	}
	return result{text: strings.TrimSuffix(b.String(), "\n")}
}

// lineOf returns the text of a matching line, with notes on what was left out of a long one.
func lineOf(m *sandboxv1.GrepMatch) string {
	text := strings.ToValidUTF8(string(m.GetText()), "\uFFFD")
	if n := m.GetCutBefore(); n > 0 {
		text = fmt.Sprintf("[%d bytes cut] ... %s", n, text)
	}
	if n := m.GetCutAfter(); n > 0 {
		text += fmt.Sprintf(" ... [%d bytes cut]", n)
	}
	return text
}

// grep searches the contents of files.
func (w *workspace) grep(ctx context.Context, c event) result {
	q, bad, ok := readQuery(c)
	if !ok {
		return bad
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.files.GrepFiles(ctx, &sandboxv1.GrepFilesRequest{Session: w.session, Pattern: q.Pattern, Path: q.Path, Mode: sandboxv1.GrepMode_GREP_MODE_LINES})
	if err != nil {
		return refused(ctx, err, shown(q.Path))
	}
	var b strings.Builder
	for more := false; ; {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && b.Len() == 0:
			return done("no matches")
		case errors.Is(err, io.EOF) && more:
			b.WriteString("[There are more matches. Use a narrower pattern or path.]\n")
			fallthrough
		case errors.Is(err, io.EOF):
			return result{text: strings.TrimSuffix(b.String(), "\n")}
		case err != nil:
			return refused(ctx, err, shown(q.Path))
		}
		more = more || m.GetTruncated()
		for _, x := range m.GetMatches() {
			if b.Len() > maxMatches {
				more = true
				break
			}
			fmt.Fprintf(&b, "%s:%d:%s\n", shown(x.GetPath()), x.GetLine(), lineOf(x))
		}
	}
}
