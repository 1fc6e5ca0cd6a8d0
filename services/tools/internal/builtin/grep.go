package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	grepDefaultLimit = 1000
	grepMaxLimit     = 100_000
	grepMaxContext   = 100
	// grepMaxText bounds the text that the model sees.
	grepMaxText = 256 << 10
)

var grepSpec = tool.Spec{
	Name: "Grep",
	Description: `Searches the files of the workspace for a regular expression (RE2 syntax: no look-around, no backreferences).

- output_mode: files_with_matches (the default) lists the files, content shows the lines, count the number of matching lines in each file.
- glob (such as *.js or **/*.{ts,tsx}) or type (such as go, py, js) choose the files; path the directory or file.
- Of a line of more than 2000 bytes the part around the match is shown, with notes on what was cut.
- -A, -B, -C, -n and head_limit shape the output. With multiline a match may span lines.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "The regular expression"},
    "path": {"type": "string", "description": "The file or directory to search; the workspace when left out"},
    "glob": {"type": "string", "description": "Only files whose path matches"},
    "type": {"type": "string", "description": "Only files of this type: go, py, js, ts, rust, java, c, cpp, md, json, yaml and so on"},
    "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"], "description": "files_with_matches when left out"},
    "-A": {"type": "integer", "minimum": 0, "description": "Lines to show after each match; only with content"},
    "-B": {"type": "integer", "minimum": 0, "description": "Lines to show before each match; only with content"},
    "-C": {"type": "integer", "minimum": 0, "description": "Lines to show before and after each match; only with content"},
    "-n": {"type": "boolean", "description": "Show line numbers; true when left out; only with content"},
    "-i": {"type": "boolean", "description": "Letters match in both cases"},
    "head_limit": {"type": "integer", "minimum": 0, "description": "Show only the first lines, files or counts"},
    "multiline": {"type": "boolean", "description": "A dot matches a line feed, and a match may span lines"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`,
	ReadOnly: true, Parallel: true, Idempotent: true,
}

type grepParams struct {
	Pattern    string
	Path       string
	Glob       string
	Type       string
	OutputMode string      `json:"output_mode"`
	After      tool.Number `json:"-A"`
	Before     tool.Number `json:"-B"`
	Around     tool.Number `json:"-C"`
	Numbers    *bool       `json:"-n"`
	IgnoreCase bool        `json:"-i"`
	HeadLimit  tool.Number `json:"head_limit"`
	Multiline  bool
}

type grep struct{ *sandbox }

// Run searches by content.
func (g grep) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p grepParams
	if err := params(c, &p); err != nil {
		return nil, err
	}
	p.Path, p.Glob = filename.Parse(p.Path), filename.ParsePattern(p.Glob)
	for _, s := range []string{p.Pattern, p.Path, p.Glob} {
		if bad := badPath(s); bad != nil {
			return tool.Failed("pattern, path or glob: " + tool.Text(bad)), nil
		}
	}
	req, filter, bad := p.request(c)
	if bad != nil {
		return bad, nil
	}
	found, err := g.search(to(ctx, c), req, filter)
	if err != nil {
		return failure(ctx, err, p.Path)
	}
	return tool.OK(p.show(found)), nil
}

// request returns the sandbox's request, and a filter for conditions that it
// cannot express.
func (p grepParams) request(c tool.Call) (*sandboxv1.GrepFilesRequest, func(string) bool, *tool.Result) {
	filter := func(string) bool { return true }
	pattern := p.Glob
	if p.Type != "" {
		globs, ok := fileTypes[p.Type]
		if !ok {
			return nil, nil, tool.Failed("There is no file type " + clip(p.Type, 50) + ". Use glob, or one of: " + strings.Join(fileTypeNames(), ", ") + ".")
		}
		if pattern == "" {
			pattern = globs
		} else {
			filter = func(file string) bool { return doublestar.MatchUnvalidated(globs, file) }
		}
	}
	limit := p.HeadLimit
	if limit == 0 {
		limit = grepDefaultLimit
	}
	req := &sandboxv1.GrepFilesRequest{
		Session: c.Session, WorkspaceGeneration: c.WorkspaceGeneration,
		Pattern: p.Pattern, Path: p.Path, Glob: pattern, ResolvedPath: c.Leads, Denied: c.Withheld,
		IgnoreCase: p.IgnoreCase, Multiline: p.Multiline,
		MaxLines: int32(limit.Within(1, grepMaxLimit)),
		Mode:     sandboxv1.GrepMode_GREP_MODE_FILES,
	}
	switch p.OutputMode {
	case "content":
		req.Mode = sandboxv1.GrepMode_GREP_MODE_LINES
		req.Before = int32(max(p.Before, p.Around).Within(0, grepMaxContext))
		req.After = int32(max(p.After, p.Around).Within(0, grepMaxContext))
	case "count":
		req.Mode = sandboxv1.GrepMode_GREP_MODE_COUNT
	}
	return req, filter, nil
}

// grepFound has the results of a search.
type grepFound struct {
	matches       []*sandboxv1.GrepMatch
	more, leftOut bool
}

// search collects the matches in files that pass the filter, in bounded memory.
func (g grep) search(ctx context.Context, req *sandboxv1.GrepFilesRequest, filter func(string) bool) (found grepFound, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := g.files.GrepFiles(ctx, req)
	if err != nil {
		return found, err
	}
	size := 0
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		found.more = found.more || m.GetTruncated()
		found.leftOut = found.leftOut || m.GetLeftOut()
		for _, match := range m.GetMatches() {
			if !filter(match.GetPath()) {
				continue
			}
			if size += len(match.GetPath()) + len(match.GetText()) + 24; size > grepMaxText {
				found.more = true
				return found, nil
			}
			found.matches = append(found.matches, match)
		}
	}
}

// show formats matches as ripgrep does.
func (p grepParams) show(found grepFound) string {
	var b strings.Builder
	switch {
	case len(found.matches) == 0 && (p.OutputMode == "content" || p.OutputMode == "count"):
		b.WriteString("No matches found\n")
	case len(found.matches) == 0:
		b.WriteString("No files found\n")
	case p.OutputMode == "content":
		p.showLines(&b, found.matches)
	case p.OutputMode == "count":
		total := int64(0)
		for _, m := range found.matches {
			fmt.Fprintf(&b, "%s:%d\n", shown(m.GetPath()), m.GetCount())
			total += m.GetCount()
		}
		fmt.Fprintf(&b, "\nFound %d matching lines in %d files.\n", total, len(found.matches))
	default:
		fmt.Fprintf(&b, "Found %d files\n", len(found.matches))
		for _, m := range found.matches {
			b.WriteString(shown(m.GetPath()) + "\n")
		}
	}
	if found.more {
		b.WriteString("(There is more. Use a narrower pattern, path or glob, or a higher head_limit.)\n")
	}
	b.WriteString(alike(found.paths()))
	if found.leftOut {
		b.WriteString(leftOut)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// paths returns the paths of the files with matches.
func (f grepFound) paths() (paths []string) {
	for _, m := range f.matches {
		if len(paths) == 0 || paths[len(paths)-1] != m.GetPath() {
			paths = append(paths, m.GetPath())
		}
	}
	return paths
}

func (p grepParams) showLines(b *strings.Builder, matches []*sandboxv1.GrepMatch) {
	around := p.Around > 0 || p.Before > 0 || p.After > 0
	var last *sandboxv1.GrepMatch
	for _, m := range matches {
		if around && last != nil && (last.GetPath() != m.GetPath() || last.GetLine()+1 != m.GetLine()) {
			b.WriteString("--\n")
		}
		last = m
		sep := ":"
		if m.GetContext() {
			sep = "-"
		}
		b.WriteString(shown(m.GetPath()) + sep)
		if p.Numbers == nil || *p.Numbers {
			fmt.Fprintf(b, "%d%s", m.GetLine(), sep)
		}
		b.WriteString(lineOf(m) + "\n")
	}
}

// lineOf returns the text of a line, with notes on what was left out of a long one.
func lineOf(m *sandboxv1.GrepMatch) string {
	text := strings.ToValidUTF8(withoutEnd(string(m.GetText())), "\uFFFD")
	if n := m.GetCutBefore(); n > 0 {
		text = fmt.Sprintf("[%d bytes cut] ... %s", n, text)
	}
	if n := m.GetCutAfter(); n > 0 {
		text += fmt.Sprintf(" ... [%d bytes cut]", n)
	}
	return text
}

// fileTypes are the types that a search can be limited to, as globs.
var fileTypes = map[string]string{
	"c": "**/*.{c,h}", "cpp": "**/*.{cc,cpp,cxx,hh,hpp,hxx,h,inl}", "cs": "**/*.cs", "css": "**/*.{css,scss}",
	"csv": "**/*.csv", "go": "**/*.go", "html": "**/*.{htm,html}", "java": "**/*.java", "js": "**/*.{js,jsx,mjs,cjs}",
	"json": "**/*.json", "kotlin": "**/*.{kt,kts}", "lua": "**/*.lua", "make": "**/{Makefile,makefile,GNUmakefile,*.mk}",
	"markdown": "**/*.{md,markdown,mdx}", "md": "**/*.{md,markdown,mdx}", "perl": "**/*.{pl,pm}", "php": "**/*.php",
	"proto": "**/*.proto", "py": "**/*.{py,pyi}", "python": "**/*.{py,pyi}", "ruby": "**/*.{rb,gemspec}", "rust": "**/*.rs",
	"sh": "**/*.{sh,bash,zsh}", "sql": "**/*.sql", "swift": "**/*.swift", "toml": "**/*.toml", "ts": "**/*.{ts,tsx,mts,cts}",
	"txt": "**/*.txt", "xml": "**/*.xml", "yaml": "**/*.{yaml,yml}", "zig": "**/*.zig",
}

func fileTypeNames() []string {
	names := make([]string, 0, len(fileTypes))
	for name := range fileTypes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
