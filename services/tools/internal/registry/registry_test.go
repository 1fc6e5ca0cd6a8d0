package registry

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func made(t *testing.T, name, provider string) *tool.Tool {
	t.Helper()
	m, err := tool.New(tool.Spec{Name: name, Provider: provider, InputSchema: `{"type":"object"}`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAfterPagesByName(t *testing.T) {
	r, err := New(made(t, "b", "x"), made(t, "a", "x"), made(t, "c", "y"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after string
		limit int
		want  []string
		more  bool
	}{
		{"", 2, []string{"a", "b"}, true},
		{"b", 2, []string{"c"}, false},
		{"bb", 1, []string{"c"}, false},
		{"z", 1, nil, false},
		{"", 0, nil, true},
	} {
		found, more := r.After(c.after, c.limit)
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
		}
		if diff := cmp.Diff(c.want, names); diff != "" || more != c.more {
			t.Errorf("after %q: %v (-want +got):\n%s", c.after, more, diff)
		}
	}
}

func TestTwoToolsOfOneNameAreRefused(t *testing.T) {
	_, err := New(made(t, "a", "builtin"), made(t, "a", "github"))
	if err == nil || !strings.Contains(err.Error(), "builtin and github") {
		t.Errorf("got %v", err)
	}
}
