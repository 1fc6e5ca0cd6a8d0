package apierr_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// services has the source of all services.
const services = "../../.."

// splitting are packages that are being taken apart.
var splitting = regexp.MustCompile(`session/internal/turn/`)

// TestReasonsAreComparedByTheirEnums looks for reasons that are compared with text: the
// compiler does not notice when the name of a reason changes.
func TestReasonsAreComparedByTheirEnums(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	err := filepath.WalkDir(services, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "kit/apierr/") || splitting.MatchString(path) {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if literalReason(n) {
				t.Errorf("%s: compare the reason with a value of its enum: apierr.Is or apierr.As", files.Position(n.Pos()))
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
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) < 2 {
			return false
		}
		p, ok := f.X.(*ast.Ident)
		return ok && p.Name == "strings" && isReason(n.Args[0]) && isText(n.Args[1])
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

func isReason(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := f.X.(*ast.Ident)
	return ok && p.Name == "apierr" && f.Sel.Name == "Reason"
}

// isText reports whether x is text that is not empty.
func isText(x ast.Expr) bool {
	l, ok := x.(*ast.BasicLit)
	return ok && l.Kind == token.STRING && l.Value != `""`
}
