package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

var (
	yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```")
	command   = regexp.MustCompile(`(?m)^\$ (?:[A-Z_]+=\S+ )*(?:bin/)?fairlead (.*)$`)
)

// docPages returns the texts of README.md and docs/, by name.
func docPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join("../../../..", pattern))
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(name)] = string(text)
		}
	}
	return all
}

func TestExamplesOfTheConfigurationLoad(t *testing.T) {
	t.Parallel()
	loaded := 0
	for name, text := range docPages(t) {
		for _, m := range yamlBlock.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "session:") && !strings.HasPrefix(m[1], "tools:") && !strings.HasPrefix(m[1], "sandbox:") {
				continue // of another program
			}
			file := filepath.Join(t.TempDir(), "fairlead.yaml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			conf := host.Defaults(dataHome)
			o := loadOptions([]string{"--config", file}, io.Discard)
			o.Environ = []string{}
			if err := config.Load(&conf, o); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, m[1])
			}
			loaded++
		}
	}
	if loaded < 10 {
		t.Errorf("only %d examples were found", loaded)
	}
}

func TestCommandsInPagesExist(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(new(commands), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}),
		kong.BindTo(t.Context(), (*context.Context)(nil)), kong.Bind(stdio{in: &bytes.Buffer{}, out: io.Discard, err: io.Discard, env: os.Getenv}))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, text := range docPages(t) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], " #")
			args := words(line)
			if len(args) == 0 || args[0] == "serve" {
				continue // serve reads its flags itself
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: fairlead %s: %v", name, line, err)
			}
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands were found", checked)
	}
}

// words splits a shell's line at spaces outside of quotes, up to a redirection or
// a background sign.
func words(line string) []string {
	var all []string
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if w == "&" || w == "<" || w == ">" || w == "|" {
			break
		}
		all = append(all, strings.Trim(w, `'"`))
	}
	return all
}
