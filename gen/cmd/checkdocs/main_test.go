package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAGoodPageHasNoFaults(t *testing.T) {
	faults := faultsOf(t, map[string]string{
		"README.md": "See [here](docs/a.md#two-words) and [the folder](docs).\n",
		"docs/a.md": "# Two words\n\n`GET /v1/agents/coder`, `POST /v1/sessions/ID:fork` and `SessionService.GetSession`.\n```\n[no link](nowhere)\n# no heading\n```\n`[no link](nowhere)`\n",
	})
	if len(faults) > 0 {
		t.Errorf("faults of a good page: %v", faults)
	}
}

func TestEachFaultIsFoundWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"[x](missing.md)":                "docs/a.md:2: the link missing.md leads to no file",
		"[x](a.md#missing)":              "docs/a.md:2: the link a.md#missing leads to no heading",
		"[x](#missing)":                  "docs/a.md:2: the link #missing leads to no heading",
		"`GET /v1/nothing`":              "docs/a.md:2: there is no route GET /v1/nothing",
		"`PUT /v1/sessions/s1/turns/t1`": "docs/a.md:2: there is no route PUT /v1/sessions/s1/turns/t1",
		"SessionService.Missing":         "docs/a.md:2: there is no RPC SessionService.Missing",
		"MissingService.GetSession":      "docs/a.md:2: there is no RPC MissingService.GetSession",
		strings.Repeat("line\n", 200):    "docs/a.md: 201 lines are more than 200",
	} {
		if got := faultsOf(t, map[string]string{"docs/a.md": "# Title\n" + text}); !slices.Equal(got, []string{want}) {
			t.Errorf("faults %q, want %q", got, want)
		}
	}
}

func TestTheAPIPageNamesEveryRoute(t *testing.T) {
	got := faultsOf(t, map[string]string{apiPage: "`GET /v1/agents/{agent}`\n"})
	if !slices.Contains(got, "docs/api.md: the route GET /v1/agents is missing") || slices.Contains(got, "docs/api.md: the route GET /v1/agents/{agent} is missing") {
		t.Errorf("faults %q", got)
	}
}

// faultsOf returns the faults of a project with these pages.
func faultsOf(t *testing.T, pages map[string]string) []string {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range pages {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	faults, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	return faults
}
