package apierr_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// services has the source of all services.
const services = "../../.."

// TestReasonsAreNamedByTheirEnums looks for reasons that are written as text: the compiler
// does not notice when the name of a reason changes. Tests may make errors of other reasons.
func TestReasonsAreNamedByTheirEnums(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	err := filepath.WalkDir(services, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "kit/apierr/") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(source, []byte("apierr.Reason(")) && !bytes.Contains(source, []byte("apierr.New(")) {
			return err
		}
		f, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if literalReason(n) {
				t.Errorf("%s: compare the reason with a value of its enum: apierr.Is or apierr.As", files.Position(n.Pos()))
			}
			if literalError(n) && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s: make the error of a value of its reason's enum: apierr.Of", files.Position(n.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// literalReason reports whether a node compares the result of apierr.Reason with text.
func literalReason(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return isReason(n.X) && isText(n.Y) || isText(n.X) && isReason(n.Y)
	case *ast.CallExpr:
		in, _ := function(n)
		return in == "strings" && len(n.Args) == 2 && isReason(n.Args[0]) && isText(n.Args[1])
	case *ast.SwitchStmt:
		return isReason(n.Tag) && hasTextCase(n)
	}
	return false
}

func hasTextCase(s *ast.SwitchStmt) bool {
	for _, c := range s.Body.List {
		for _, v := range c.(*ast.CaseClause).List {
			if isText(v) {
				return true
			}
		}
	}
	return false
}

// literalError reports whether a node makes an error whose reason is text.
func literalError(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	in, name := function(call)
	return in == "apierr" && name == "New" && len(call.Args) > 2 && isText(call.Args[2])
}

func isReason(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	in, name := function(call)
	return in == "apierr" && name == "Reason"
}

// function returns the package and the name of a function of another package.
func function(call *ast.CallExpr) (in, name string) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	p, ok := f.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return p.Name, f.Sel.Name
}

// isText reports whether x is text that is not empty.
func isText(x ast.Expr) bool {
	l, ok := x.(*ast.BasicLit)
	return ok && l.Kind == token.STRING && l.Value != `""`
}
