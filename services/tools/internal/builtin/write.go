package builtin

import (
	"context"
	"errors"
	"io"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// changeTimeout bounds one change of a file. A change is not interrupted:
	// it is done or not done, and the result says which.
	changeTimeout = time.Minute
	writeChunk    = 512 << 10
)

var writeSpec = tool.Spec{
	Name: "Write",
	Description: `Writes a file of the workspace. A file that is there is replaced; directories that are missing are made.

- file_path is absolute below /workspace, or relative to it.
- Read a file before you replace it. To change a part of a file, use Edit.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to write"},
    "content": {"type": "string", "description": "What to write: the whole file"}
  },
  "required": ["file_path", "content"],
  "additionalProperties": false
}`,
	Idempotent: true,
}

type write struct{ effects }

// Run writes the file. The sandbox does it once per call id.
func (w write) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct {
		FilePath string `json:"file_path"`
		Content  string
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	p.FilePath = filename.Parse(p.FilePath)
	if bad := badPath(p.FilePath); bad != nil {
		return bad, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	change, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	done, err := w.send(change, c, p.FilePath, p.Content)
	if err != nil {
		return writeTexts.failure(change, err, p.FilePath)
	}
	file := shown(done.GetFile().GetPath())
	if done.GetCreated() {
		return tool.OK("File created successfully at: " + file), nil
	}
	return tool.OK("The file " + file + " has been updated."), nil
}

// writeTexts are the texts for refusals of a file to write.
var writeTexts = texts{sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE: cannot("written")}

func (w write) send(ctx context.Context, c tool.Call, file, content string) (*sandboxv1.WriteFileResponse, error) {
	stream, err := w.files.WriteFile(to(ctx, c))
	if err != nil {
		return nil, err
	}
	start := &sandboxv1.WriteFileStart{Call: ref(c), Path: file, ResolvedPath: c.Leads}
	err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Start{Start: start}})
	for err == nil && content != "" {
		n := min(len(content), writeChunk)
		err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Data{Data: []byte(content[:n])}})
		content = content[n:]
	}
	// io.EOF means that the sandbox has ended the stream and returns the cause.
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.CloseAndRecv()
}
