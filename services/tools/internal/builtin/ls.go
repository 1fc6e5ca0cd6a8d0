package builtin

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	lsMaxFiles = 1000
	lsMaxDirs  = 100
)

var lsSpec = tool.Spec{
	Name: "LS",
	Description: `Lists a directory of the workspace with what is in its directories, 1000 files at most, the upper levels first. What is in .git, node_modules and the like is left out unless it is asked for by path.

If you know what you look for, Glob and Grep are better.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The directory; the workspace when left out"},
    "ignore": {"type": "array", "maxItems": 64, "items": {"type": "string", "minLength": 1, "maxLength": 256}, "description": "Globs of names or paths to leave out"}
  },
  "additionalProperties": false
}`,
	ReadOnly: true, Parallel: true, Idempotent: true,
}

// bulky directories are named, not listed.
var bulky = map[string]bool{".git": true, "node_modules": true, "__pycache__": true, ".venv": true, ".cache": true}

type ls struct{ *sandbox }

// tree is a directory that is being listed.
type tree struct {
	given   string // in the model's words
	root    string // relative to the workspace; the target of given, if that is known
	entries map[string][]*sandboxv1.FileInfo
	paths   []string
	more    bool
	leftOut bool
}

// Run lists level by level, so that one deep directory does not use up the
// listing.
func (l ls) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct {
		Path   string
		Ignore []string
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	p.Path = filename.Parse(p.Path)
	for i, s := range p.Ignore {
		p.Ignore[i] = filename.ParsePattern(s)
	}
	for _, s := range append([]string{p.Path}, p.Ignore...) {
		if bad := badPath(s); bad != nil {
			return bad, nil
		}
	}
	root := path.Clean(strings.TrimPrefix(strings.TrimPrefix(p.Path, workspace), "/"))
	if path.IsAbs(p.Path) && p.Path != workspace && !strings.HasPrefix(p.Path, workspace+"/") {
		root = p.Path // the sandbox refuses it
	}
	t := &tree{given: root, root: cmp.Or(c.Leads, root), entries: map[string][]*sandboxv1.FileInfo{}}
	queue := []string{t.root}
	for n := 0; len(queue) > 0; n++ {
		if n == lsMaxDirs || len(t.paths) >= lsMaxFiles {
			t.more = true
			break
		}
		below, err := l.list(ctx, c, t, queue[0], p.Ignore)
		switch {
		case err != nil && n == 0:
			return lsTexts.failure(ctx, err, p.Path)
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			t.more = true // it was removed, or may not be read
		}
		queue = append(queue[1:], below...)
	}
	return tool.OK(t.String()), nil
}

// lsTexts are the texts for refusals of a directory.
var lsTexts = texts{
	sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE: func(_ error, dir string) string {
		return shown(dir) + " is not a directory. Use Read for a file."
	},
	sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND: func(_ error, dir string) string {
		return "Directory does not exist: " + shown(dir)
	},
}

// list lists one directory and returns its subdirectories.
func (l ls) list(ctx context.Context, c tool.Call, t *tree, dir string, ignore []string) (below []string, err error) {
	q := &sandboxv1.ListFilesRequest{
		Session: c.Session, Path: dir, Ignore: ignore, WorkspaceGeneration: c.WorkspaceGeneration,
		PageSize: int32(lsMaxFiles - len(t.paths)), Denied: c.Withheld,
	}
	if c.Leads != "" {
		q.Path, q.ResolvedPath = path.Join(t.given, t.beneath(dir)), dir
	}
	page, err := l.files.ListFiles(to(ctx, c), q)
	if err != nil {
		return nil, err
	}
	t.more = t.more || page.GetNextPageToken() != ""
	t.leftOut = t.leftOut || page.GetLeftOut()
	for _, f := range page.GetFiles() {
		name := path.Base(f.GetPath())
		full := path.Join(dir, name)
		t.paths = append(t.paths, full)
		t.entries[dir] = append(t.entries[dir], f)
		if f.GetType() == sandboxv1.FileType_FILE_TYPE_DIRECTORY && !bulky[name] {
			below = append(below, full)
		}
	}
	return below, nil
}

// beneath returns the path of a directory relative to the tree's root.
func (t *tree) beneath(dir string) string {
	if t.root == "." {
		return dir
	}
	return strings.TrimPrefix(strings.TrimPrefix(dir, t.root), "/")
}

// String draws the tree.
func (t *tree) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s/\n", shown(t.root))
	if len(t.paths) == 0 {
		b.WriteString("  (empty)\n")
	}
	t.draw(&b, t.root, "  ")
	if t.more {
		b.WriteString("(There are more files. Use a narrower path, or Glob.)\n")
	}
	b.WriteString(alike(t.paths))
	if t.leftOut {
		b.WriteString(leftOut)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (t *tree) draw(b *strings.Builder, dir, indent string) {
	for _, f := range t.entries[dir] {
		name := path.Base(f.GetPath())
		fmt.Fprintf(b, "%s- %s", indent, filename.Show(name))
		switch f.GetType() {
		case sandboxv1.FileType_FILE_TYPE_DIRECTORY:
			b.WriteString("/\n")
			t.draw(b, path.Join(dir, name), indent+"  ")
		case sandboxv1.FileType_FILE_TYPE_SYMLINK:
			b.WriteString(" -> " + filename.Show(f.GetLinkTarget()) + "\n")
		default:
			b.WriteString("\n")
		}
	}
}
