package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

const (
	// maxRead bounds the part of a file that a call reads.
	maxRead = 256 << 10
	// writeChunk is how much of a file a message carries.
	writeChunk = 1 << 20
	// maxPath is the sandbox's own limit.
	maxPath = 4096
)

// place checks the path of a file, and returns it as the sandbox takes it.
func place(given string) (name string, bad result, ok bool) {
	switch name = filename.Parse(given); {
	case name == "":
		return "", failed("file_path is missing."), false
	case strings.ContainsRune(name, 0) || len(name) > maxPath:
		return "", failed("The path contains a NUL character, or is longer than %d bytes.", maxPath), false
	}
	return name, result{}, true
}

// read returns a file, or the lines of view_range.
func (w *workspace) read(ctx context.Context, c event) result {
	var p struct {
		Path  string  `json:"file_path"`
		Range []int64 `json:"view_range"`
	}
	if bad, ok := input(c, &p); !ok {
		return bad
	}
	name, bad, ok := place(p.Path)
	if !ok {
		return bad
	}
	r := &sandboxv1.ReadFileRequest{Session: w.session, Path: name}
	lines := &sandboxv1.LineRange{MaxBytes: maxRead}
	switch {
	case len(p.Range) == 2 && p.Range[1] > 0 && p.Range[1] < p.Range[0]:
		return result{}
	case len(p.Range) == 2:
		lines.First = max(1, p.Range[0])
		if p.Range[1] > 0 {
			lines.Count = p.Range[1] - lines.First + 1
		}
	case p.Range != nil:
		return failed("view_range must have the first and the last line.")
	}
	r.Range = &sandboxv1.ReadFileRequest_Lines{Lines: lines}
	data, end, err := w.content(ctx, r)
	switch {
	case err != nil:
		return refused(ctx, err, shown(name))
	case bytes.IndexByte(data, 0) >= 0:
		return failed("%s is not text: it contains NUL bytes. Look at it with a command, such as xxd or file.", shown(name))
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	if end.GetMore() && lines.GetCount() != end.GetLines() {
		text += fmt.Sprintf("\n[The file has more lines. Go on with view_range [%d, 0].]", max(1, lines.GetFirst())+end.GetLines())
	}
	return result{text: text}
}

// content reads a part of a file.
func (w *workspace) content(ctx context.Context, r *sandboxv1.ReadFileRequest) (data []byte, end *sandboxv1.ReadFileEnd, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.files.ReadFile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, end, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if m.GetEnd() != nil {
			end = m.GetEnd()
		}
		data = append(data, m.GetData()...)
	}
}

// write replaces or makes a file. The sandbox does it once for each call.
func (w *workspace) write(ctx context.Context, c event) result {
	var p struct {
		Path    string `json:"file_path"`
		Content string
	}
	if bad, ok := input(c, &p); !ok {
		return bad
	}
	name, bad, ok := place(p.Path)
	if !ok {
		return bad
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	change, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	if err := w.put(change, &sandboxv1.WriteFileStart{Call: w.ref(c.ID), Path: name}, p.Content); err != nil {
		return refused(ctx, err, shown(name))
	}
	return done("Wrote %d bytes to %s.", len(p.Content), shown(name))
}

func (w *workspace) put(ctx context.Context, start *sandboxv1.WriteFileStart, content string) error {
	stream, err := w.files.WriteFile(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Start{Start: start}})
	for err == nil && content != "" {
		n := min(len(content), writeChunk)
		err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Data{Data: []byte(content[:n])}})
		content = content[n:]
	}
	if err != nil && !errors.Is(err, io.EOF) { // after EOF the answer has the cause
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}

// edit replaces text in a file. The sandbox does it once for each call.
func (w *workspace) edit(ctx context.Context, c event) result {
	var p struct {
		Path string `json:"file_path"`
		Old  string `json:"old_string"`
		New  string `json:"new_string"`
		All  bool   `json:"replace_all"`
	}
	if bad, ok := input(c, &p); !ok {
		return bad
	}
	name, bad, ok := place(p.Path)
	switch {
	case !ok:
		return bad
	case p.Old == "":
		return failed("old_string is missing. To make a file, use write.")
	case p.Old == p.New:
		return failed("old_string and new_string are the same: there is nothing to change.")
	case ctx.Err() != nil:
		return stopped(ctx)
	}
	change, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	got, err := w.files.EditFile(change, &sandboxv1.EditFileRequest{
		Call: w.ref(c.ID), Path: name, Edits: []*sandboxv1.Edit{{OldText: p.Old, NewText: p.New, ReplaceAll: p.All}},
	})
	if err != nil {
		return refused(ctx, err, shown(name))
	}
	n := int32(0)
	for _, r := range got.GetReplacements() {
		n += r
	}
	return done("Edited %s: %d replaced.", shown(name), n)
}
