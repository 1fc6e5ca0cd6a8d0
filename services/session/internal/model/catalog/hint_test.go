package catalog

import (
	"strings"
	"testing"
)

func TestAnUnknownModelNamesTheNearModelAndNotAll(t *testing.T) {
	for name, c := range map[string]struct {
		model         string
		want, without []string
	}{
		"a provider without any":  {"nowhere:xyz", []string{"anthropic:claude-opus-5", "openai:gpt-5.5"}, nil},
		"a provider of a scripts": {"scripted:defaul", []string{"did you mean scripted:default?"}, []string{"openai:"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Model: c.model}, env())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
			for _, not := range c.without {
				if err != nil && strings.Contains(err.Error(), not) {
					t.Errorf("%q is in: %v", not, err)
				}
			}
		})
	}
}

func TestHintsNameTheSectionOfTheConfigurationFile(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"an unknown model":              {Config{Model: "nowhere:xyz"}, "session:\n  models:\n    \"nowhere:xyz\": {"},
		"a provider without a kind":     {Config{Providers: map[string]Provider{"local": {}}}, "session.providers.local: kind is missing"},
		"a model without its provider":  {Config{Models: map[string]Limits{"local:llama": {}}}, `session.models: "local:llama"`},
		"a provider of scripts without": {Config{Providers: map[string]Provider{"mine": {Kind: "scripted"}}}, "session.providers.mine: scenario"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Section = "session"
			if _, err := New(c.config, env()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
	p := &provider{name: "bare"}
	if got := p.keyHint("session"); !strings.Contains(got, "set session.providers.bare.key-env") {
		t.Errorf("the hint about a key is %q", got)
	}
}
