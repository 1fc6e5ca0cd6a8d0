package builtin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

var editSpec = tool.Spec{
	Name: "Edit",
	Description: `Replaces text in a file of the workspace, exactly.

- Read the file first. old_string must be in it exactly as it stands there, with its indentation, and without the line numbers that Read puts before it.
- Line breaks keep the form that the file has, such as CR LF; write them as \n.
- old_string must occur once: add lines around it until it does, or set replace_all to change every occurrence.
- An empty old_string makes a new file of new_string.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to change"},
    "old_string": {"type": "string", "description": "The text to replace"},
    "new_string": {"type": "string", "description": "The text to put there; not the same"},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence; false when left out"}
  },
  "required": ["file_path", "old_string", "new_string"],
  "additionalProperties": false
}`,
}

// replacement is one edit, as the model writes it.
type replacement struct {
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

type edit struct{ effects }

// Run makes the edit. The sandbox does it once per call id.
func (e edit) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct {
		FilePath string `json:"file_path"`
		replacement
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	return e.change(ctx, c, p.FilePath, []replacement{p.replacement})
}

// change makes all edits of a file, or none.
func (s *sandbox) change(ctx context.Context, c tool.Call, file string, edits []replacement) (*tool.Result, error) {
	file = filename.Parse(file)
	if bad := badPath(file); bad != nil {
		return bad, nil
	}
	req := &sandboxv1.EditFileRequest{Call: ref(c), Path: file, ResolvedPath: c.Leads}
	for i, e := range edits {
		if e.OldString == e.NewString {
			return tool.Failed(which(i, edits) + "No changes to make: old_string and new_string are exactly the same."), nil
		}
		req.Edits = append(req.Edits, &sandboxv1.Edit{OldText: e.OldString, NewText: e.NewString, ReplaceAll: e.ReplaceAll})
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	change, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	done, err := s.files.EditFile(to(change, c), req)
	if err != nil {
		return editTexts(edits).failure(change, err, file)
	}
	return tool.OK(changed(done, edits)), nil
}

// changed shows the model the changed parts of the file.
func changed(done *sandboxv1.EditFileResponse, edits []replacement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The file %s has been updated.", shown(done.GetFile().GetPath()))
	for i, n := range done.GetReplacements() {
		if n != 1 || len(edits) > 1 {
			fmt.Fprintf(&b, "\n%s%d replaced.", which(i, edits), n)
		}
	}
	if done.GetSnippet() == "" {
		return b.String()
	}
	b.WriteString(" Here's the result of running `cat -n` on a snippet of the edited file:\n")
	line := done.GetSnippetFirstLine()
	for text := range strings.Lines(clip(strings.TrimPrefix(done.GetSnippet(), byteOrderMark), 8000)) {
		fmt.Fprintf(&b, "%6d\t%s\n", line, shortLine(withoutEnd(text)))
		line++
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// editTexts returns the texts for refusals of edits, of which one is at fault.
func editTexts(edits []replacement) texts {
	return texts{
		sandboxv1.ErrorReason_ERROR_REASON_EDIT_NO_MATCH: func(err error, file string) string {
			i := failedEdit(err, len(edits))
			return fmt.Sprintf("%sString to replace not found in file%s. It must be there exactly, with its indentation and line breaks, and without the line numbers of Read. Read %s again and copy it from there. Nothing was changed.\nString: %s",
				which(i, edits), why(err), filename.Show(file), clip(edits[i].OldString, 500))
		},
		sandboxv1.ErrorReason_ERROR_REASON_EDIT_NOT_UNIQUE: func(err error, _ string) string {
			i := failedEdit(err, len(edits))
			return fmt.Sprintf("%sFound %s matches of the string to replace, but replace_all is false. To replace every occurrence, set replace_all to true; to replace one, add lines around it until it is unique. Nothing was changed.\nString: %s",
				which(i, edits), matches(err), clip(edits[i].OldString, 500))
		},
		sandboxv1.ErrorReason_ERROR_REASON_FILE_EXISTS: func(err error, file string) string {
			return which(failedEdit(err, len(edits)), edits) + "Cannot create a new file: " + filename.Show(file) + " exists and is not empty. Give the text to replace in old_string, or use Write."
		},
		sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE: cannot("edited"),
		sandboxv1.ErrorReason_ERROR_REASON_NOT_TEXT:        cannot("edited"),
	}
}

// failedEdit returns the index in the error's metadata.
func failedEdit(err error, edits int) int {
	info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
	if i, err := strconv.Atoi(info.GetMetadata()["index"]); err == nil && i >= 0 && i < edits {
		return i
	}
	return 0
}

// why returns why the text to replace may not have been found, if the sandbox says it.
func why(err error) string {
	info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
	if text := info.GetMetadata()["why"]; text != "" {
		return " (" + text + ")"
	}
	return ""
}

// matches returns how often the text to replace was found, if the sandbox says
// it.
func matches(err error) string {
	info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
	if n := info.GetMetadata()["found"]; n != "" {
		return n
	}
	return "several"
}

// which names an edit if there are several.
func which(i int, edits []replacement) string {
	if len(edits) < 2 {
		return ""
	}
	return fmt.Sprintf("Edit %d of %d: ", i+1, len(edits))
}
