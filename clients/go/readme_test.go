package fairlead_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheReadmeShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if _, want, _ := strings.Cut(string(program), "\n"); shown != want {
		t.Errorf("the page shows\n%s\nand the example is\n%s", shown, want)
	}
}
