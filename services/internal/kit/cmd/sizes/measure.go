package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	maxMethods = 40
	maxFields  = 20
	maxLines   = 400
)

// allowed has what may exceed a limit, with the reason: a file, or a type as the folder of its package, a dot and
// its name.
var allowed = map[string]string{}

// size is what a reader has to keep in mind of one type.
type size struct{ methods, fields int }

// survey collects the sizes of all types, and what is too large.
type survey struct {
	types map[string]*size
	found []string
}

// measure names each type and each file below root that exceeds a limit.
func measure(root fs.FS) ([]string, error) {
	s := survey{types: map[string]*size{}}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(d.Name()):
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
	if err != nil {
		return nil, err
	}
	return s.report(), nil
}

// skipped tells whether a folder holds no source of ours.
func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "bin" || folder == "node_modules" || folder == "testdata"
}

// file counts the lines of one file, and the fields and methods in it.
func (s *survey) file(name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	s.exceed(name, bytes.Count(source, []byte("\n")), maxLines, "lines")
	prefix := path.Dir(name)
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.of(prefix+"."+receiver(d.Recv.List[0].Type)).methods++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					s.of(prefix + "." + t.Name.Name).declare(t.Type)
				}
			}
		}
	}
	return nil
}

func (s *survey) of(name string) *size {
	if s.types[name] == nil {
		s.types[name] = &size{}
	}
	return s.types[name]
}

// declare records what stands in a type's own declaration: the fields of a struct, the methods of an interface.
// Another operating system may have a declaration of its own.
func (z *size) declare(as ast.Expr) {
	switch t := as.(type) {
	case *ast.StructType:
		z.fields = max(z.fields, t.Fields.NumFields())
	case *ast.InterfaceType:
		for _, m := range t.Methods.List {
			z.methods += len(m.Names)
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func (s *survey) report() []string {
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		s.exceed(name, s.types[name].methods, maxMethods, "methods")
		s.exceed(name, s.types[name].fields, maxFields, "fields")
	}
	return s.found
}

func (s *survey) exceed(name string, has, limit int, what string) {
	if has > limit && allowed[name] == "" {
		s.found = append(s.found, fmt.Sprintf("%s has %d %s, the limit is %d", name, has, what, limit))
	}
}
