package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	readDefaultLines = 2000
	readLineChars    = 2000
	// readMaxBytes bounds the part of a file that one call reads.
	readMaxBytes = 400 << 10
	// readMaxText bounds the numbered text.
	readMaxText = 600 << 10
	maxLineNo   = 1 << 40
)

var readSpec = tool.Spec{
	Name: "Read",
	Description: `Reads a file of the workspace. Text comes with line numbers, as cat -n shows it; images (PNG, JPEG, GIF, WebP) are shown to you.

- file_path is absolute below /workspace, or relative to it.
- Up to 2000 lines are read from the beginning, or from line offset on up to limit lines. Lines are cut after 2000 characters.
- It reads files only: use LS for directories.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to read"},
    "offset": {"type": "integer", "minimum": 0, "description": "The line to begin at, counted from 1; only for files too large to read at once"},
    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read; only for files too large to read at once"}
  },
  "required": ["file_path"],
  "additionalProperties": false
}`,
	ReadOnly: true, Parallel: true, Idempotent: true,
}

type read struct{ *sandbox }

// Run reads the file.
func (r read) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct {
		FilePath string `json:"file_path"`
		Offset   tool.Number
		Limit    tool.Number
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	p.FilePath = filename.Parse(p.FilePath)
	if bad := badPath(p.FilePath); bad != nil {
		return bad, nil
	}
	switch strings.ToLower(path.Ext(p.FilePath)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return r.image(ctx, c, p.FilePath)
	}
	if p.Limit == 0 {
		p.Limit = readDefaultLines
	}
	lines := &sandboxv1.LineRange{
		First: p.Offset.Within(1, maxLineNo), Count: p.Limit.Within(1, maxLineNo),
		MaxLineBytes: 4 * (readLineChars + 1), MaxBytes: readMaxBytes,
	}
	got, err := r.read(to(ctx, c), &sandboxv1.ReadFileRequest{
		Session: c.Session, Path: p.FilePath, ResolvedPath: c.Leads, WorkspaceGeneration: c.WorkspaceGeneration,
		Range: &sandboxv1.ReadFileRequest_Lines{Lines: lines},
	}, readMaxBytes+1)
	switch {
	case err != nil:
		return readTexts.failure(ctx, err, p.FilePath)
	case isPicture(got.data): // whatever its name says
		return r.image(ctx, c, p.FilePath)
	case isBinary(got.data):
		return tool.Failed(notText(p.FilePath, got)), nil
	}
	return numbered(got.data, got.end, lines.GetFirst()), nil
}

func (r read) image(ctx context.Context, c tool.Call, file string) (*tool.Result, error) {
	got, err := r.read(to(ctx, c), &sandboxv1.ReadFileRequest{
		Session: c.Session, Path: file, ResolvedPath: c.Leads, WorkspaceGeneration: c.WorkspaceGeneration,
		Range: &sandboxv1.ReadFileRequest_Bytes{Bytes: &sandboxv1.ByteRange{Limit: media.MaxBytes + 1}},
	}, media.MaxBytes+1)
	if err != nil {
		return readTexts.failure(ctx, err, file)
	}
	data := got.data
	is := media.Type(data)
	_, bad := media.Image(is, data)
	switch {
	case len(data) == 0:
		return tool.Failed("The image file is empty."), nil
	case len(data) > media.MaxBytes:
		return tool.Failed(fmt.Sprintf("The image is larger than %d bytes, which is the most that can be shown. Make a smaller copy of it and read that.", media.MaxBytes)), nil
	case bad != nil:
		return tool.Failed("The file has the name of an image, but cannot be shown as one: it " + bad.Error() + "."), nil //nolint:nilerr // the model is told
	}
	return tool.Image(is, filename.Show(path.Base(file)), data), nil
}

// piece is a part of a file.
type piece struct {
	data []byte
	size int64 // of the whole file
	end  *sandboxv1.ReadFileEnd
}

// read collects a file's pieces, at most limit bytes of them.
func (r read) read(ctx context.Context, req *sandboxv1.ReadFileRequest, limit int) (got piece, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.files.ReadFile(ctx, req)
	if err != nil {
		return piece{}, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return piece{}, err
		}
		if m.GetFile() != nil {
			got.size = m.GetFile().GetSize()
		}
		if m.GetEnd() != nil {
			got.end = m.GetEnd()
		}
		got.data = append(got.data, m.GetData()...)
		if len(got.data) > limit {
			got.data = got.data[:limit]
			return got, nil
		}
	}
}

// readTexts are the texts for refusals of a file to read.
var readTexts = texts{
	sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE: func(err error, file string) string {
		return strings.TrimRight(cannot("read")(err, file), ".") + ". Read reads regular files; use LS for a directory."
	},
}

// numbered formats lines like `cat -n`, with notes on omitted parts.
func numbered(data []byte, end *sandboxv1.ReadFileEnd, first int64) *tool.Result {
	if len(data) == 0 && end.GetLines() == 0 {
		if first > 1 {
			return tool.OK(fmt.Sprintf("Warning: the file exists but has fewer than %d lines.", first))
		}
		return tool.OK("Warning: the file exists but its contents are empty.")
	}
	if first == 1 {
		data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	}
	var b strings.Builder
	next, more := first, end.GetMore()
	for line := range strings.Lines(string(data)) {
		if b.Len() > readMaxText {
			more = true
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", next, shortLine(withoutEnd(line)))
		next++
	}
	if more {
		fmt.Fprintf(&b, "\n[The file has more lines. Go on with offset %d.]", next)
	}
	return tool.OK(strings.TrimSuffix(b.String(), "\n"))
}

// byteOrderMark begins some files. It is not shown: an Edit of the first line keeps it.
const byteOrderMark = "\uFEFF"

// withoutEnd returns a line without its line end, whose form Edit keeps.
func withoutEnd(line string) string {
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
}

func shortLine(line string) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) <= readLineChars {
		return line
	}
	if r := []rune(line); len(r) > readLineChars {
		return string(r[:readLineChars]) + "... [line cut]"
	}
	return line
}
