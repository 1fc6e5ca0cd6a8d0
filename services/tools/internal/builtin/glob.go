package builtin

import (
	"context"
	"path"
	"slices"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

var globSpec = tool.Spec{
	Name: "Glob",
	Description: `Finds files of the workspace by a pattern of their paths, such as **/*.go or src/**/*.{ts,tsx}; the last changed come first, 100 at most.

To find files by what is in them, use Grep.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "The pattern: *, ?, [a-z], {a,b} and **"},
    "path": {"type": "string", "description": "The directory to search in; the workspace when left out"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`,
	ReadOnly: true, Parallel: true, Idempotent: true,
}

type glob struct{ *sandbox }

// Run searches by path.
func (g glob) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct{ Pattern, Path string }
	if err := params(c, &p); err != nil {
		return nil, err
	}
	p.Pattern, p.Path = filename.ParsePattern(p.Pattern), filename.Parse(p.Path)
	for _, s := range []string{p.Pattern, p.Path} {
		if bad := badPath(s); bad != nil {
			return bad, nil
		}
	}
	pattern, bad := relativePattern(p.Pattern, p.Path)
	if bad != nil {
		return bad, nil
	}
	found, err := g.files.GlobFiles(to(ctx, c), &sandboxv1.GlobFilesRequest{
		Session: c.Session, Pattern: pattern, Path: p.Path, WorkspaceGeneration: c.WorkspaceGeneration,
		ResolvedPath: c.Leads, Denied: c.Withheld,
	})
	if err != nil {
		return failure(ctx, err, p.Path)
	}
	return tool.OK(showFiles(found)), nil
}

// relativePattern makes a pattern relative to a path. The profile decided on the
// path, so the pattern must not lead out of it.
func relativePattern(pattern, below string) (string, *tool.Result) {
	if slices.Contains(strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{},", r) }), "..") {
		return "", tool.Failed("The pattern must not contain `..`. Give the directory in path.")
	}
	if !path.IsAbs(pattern) {
		return pattern, nil
	}
	rel, ok := strings.CutPrefix(pattern, workspace+"/")
	if !ok || rel == "" || below != "" {
		return "", tool.Failed("The pattern must be relative to path, or absolute below " + workspace + " without a path.")
	}
	return rel, nil
}

func showFiles(found *sandboxv1.GlobFilesResponse) string {
	var b strings.Builder
	var paths []string
	for _, f := range found.GetFiles() {
		paths = append(paths, f.GetPath())
		b.WriteString(shown(f.GetPath()) + "\n")
	}
	if len(paths) == 0 {
		b.WriteString("No files found\n")
	}
	if found.GetTruncated() {
		b.WriteString("(There are more files. Use a narrower path or pattern.)\n")
	}
	b.WriteString(alike(paths))
	if found.GetLeftOut() {
		b.WriteString(leftOut)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
