package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const module = "github.com/fairlead/fairlead/"

// typ is what is declared of a type. Its name is the folder of its package, a dot and the name.
type typ struct {
	methods  map[string]bool
	fields   int      // without those that come from embedded types
	embedded []string // types of ours
}

// pkg is a package.
type pkg struct {
	files, lines int
	imports      map[string]bool // packages of ours
}

// survey has the sizes of all packages and types below a folder, and what is too large.
type survey struct {
	types    map[string]*typ
	packages map[string]*pkg
	wide     int // lines
	found    []finding
}

// measure reads all Go files below root but tests, their packages and generated files.
func measure(root fs.FS) (*survey, error) {
	s := &survey{types: map[string]*typ{}, packages: map[string]*pkg{}}
	return s, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(name, d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return s.file(name, source)
	})
}

// skipped reports whether a folder has no source of ours for a program.
func skipped(name, base string) bool {
	return strings.HasPrefix(base, ".") || base == "bin" || base == "node_modules" || base == "testdata" || tests(name)
}

// file counts one file.
func (s *survey) file(name string, source []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	dir, lines := path.Dir(name), bytes.Count(source, []byte("\n"))
	s.exceed(name+" lines", lines, maxLines)
	s.wide += len(wide(source))
	p := s.packages[dir]
	if p == nil {
		p = &pkg{imports: map[string]bool{}}
		s.packages[dir] = p
	}
	p.files++
	p.lines += lines
	imports := map[string]string{} // folders of ours by their names in this file
	for _, i := range file.Imports {
		at, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		at, ours := strings.CutPrefix(at, module)
		if !ours {
			continue
		}
		if !strings.HasPrefix(at, "gen/") {
			p.imports[at] = true
		}
		as := path.Base(at)
		if i.Name != nil {
			as = i.Name.Name
		}
		imports[as] = at
	}
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.of(dir + "." + base(d.Recv.List[0].Type)).methods[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					s.of(dir+"."+t.Name.Name).declare(t.Type, func(e ast.Expr) string { return named(e, dir, imports) })
				}
			}
		}
	}
	return nil
}

func (s *survey) of(name string) *typ {
	if s.types[name] == nil {
		s.types[name] = &typ{methods: map[string]bool{}}
	}
	return s.types[name]
}

// declare records what stands in a type's own declaration. Another operating system may have a declaration of its own.
func (t *typ) declare(as ast.Expr, name func(ast.Expr) string) {
	switch d := as.(type) {
	case *ast.StructType:
		t.fields = max(t.fields, t.group(d, name))
	case *ast.InterfaceType:
		for _, m := range d.Methods.List {
			for _, n := range m.Names {
				t.methods[n.Name] = true
			}
			if len(m.Names) == 0 {
				t.embed(name(m.Type))
			}
		}
	}
}

func (t *typ) embed(name string) {
	if name != "" {
		t.embedded = append(t.embedded, name)
	}
}

// group counts the fields of a struct; those of a struct without a name count as its own.
func (t *typ) group(d *ast.StructType, name func(ast.Expr) string) (n int) {
	for _, f := range d.Fields.List {
		inner := f.Type
		if p, ok := inner.(*ast.StarExpr); ok {
			inner = p.X
		}
		part, grouped := inner.(*ast.StructType)
		switch {
		case grouped:
			n += max(1, len(f.Names)) * t.group(part, name)
		case len(f.Names) > 0:
			n += len(f.Names)
		case name(f.Type) != "":
			t.embed(name(f.Type))
		default:
			n++
		}
	}
	return n
}

// named returns the name of a type of ours; empty for others.
func named(e ast.Expr, dir string, imports map[string]string) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return named(t.X, dir, imports)
	case *ast.IndexExpr:
		return named(t.X, dir, imports)
	case *ast.IndexListExpr:
		return named(t.X, dir, imports)
	case *ast.Ident:
		if ast.IsExported(t.Name) || t.Obj == nil {
			return dir + "." + t.Name
		}
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok && imports[x.Name] != "" {
			return imports[x.Name] + "." + t.Sel.Name
		}
	}
	return ""
}

// base is the name of the type that a method belongs to.
func base(of ast.Expr) string {
	_, name, _ := strings.Cut(named(of, "x", nil), ".")
	return name
}

// whole returns the methods and fields of a type with what it embeds.
func (s *survey) whole(name string, seen map[string]bool) (methods map[string]bool, fields int) {
	methods = map[string]bool{}
	t := s.types[name]
	if t == nil || seen[name] {
		return methods, 1 // such as error, or a type that is generated
	}
	seen[name] = true
	fields = t.fields
	for m := range t.methods {
		methods[m] = true
	}
	for _, e := range t.embedded {
		more, n := s.whole(e, seen)
		fields += n
		for m := range more {
			methods[m] = true
		}
	}
	return methods, fields
}

// wide returns the numbers of the lines that are too wide without their texts and comments.
func wide(source []byte) (lines []int) {
	var sc scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	sc.Init(file, source, nil, 0)
	free := map[int]int{} // columns of texts, by line
	for {
		pos, tok, text := sc.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING && !strings.Contains(text, "\n") {
			free[file.Line(pos)] += len(text)
		}
	}
	raw := false // inside a text of several lines
	for i, line := range bytes.Split(source, []byte("\n")) {
		inside := raw
		if bytes.Count(line, []byte("`"))%2 == 1 {
			raw = !raw
		}
		code, _, _ := bytes.Cut(line, []byte("//"))
		if n := len(code) + 3*bytes.Count(code, []byte("\t")) - free[i+1]; n > maxColumns && !inside && !raw {
			lines = append(lines, i+1)
		}
	}
	return lines
}
