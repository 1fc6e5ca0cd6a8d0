package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
)

func TestModelsThatNoTableHasAreWarnedOfOnce(t *testing.T) {
	models, err := catalog.New(catalog.Defaults(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agent.NewSet(map[string]agent.Spec{"lead": {
		Prompt: "Lead.", Profile: "full", Model: "openai:org/own", Tools: []string{"Task"},
		Extensions: agent.Extensions{Subagents: []agent.Subagent{
			{Name: "one", Description: "Works.", Prompt: "Work.", Model: "openai:org/sub"}, {Name: "two", Description: "Works.", Prompt: "Work.", Model: "openai:org/sub"},
			{Name: "heir", Description: "Works.", Prompt: "Work."},
		}},
	}}, "lead")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	warnOfModels(slog.New(slog.NewTextHandler(&out, nil)), agents, models)
	for _, name := range []string{"openai:org/own", "openai:org/sub"} {
		if n := strings.Count(out.String(), "model="+name); n != 1 {
			t.Errorf("%d warnings of %s in:\n%s", n, name, out.String())
		}
	}
}
