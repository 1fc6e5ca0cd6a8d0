package catalog

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// The credential of kind anthropic is a key or a token; where the environment has
// both, what the file names counts.
func TestCredentialsOfAnthropic(t *testing.T) {
	both := []string{"ANTHROPIC_API_KEY", modeltest.Key, "ANTHROPIC_AUTH_TOKEN", modeltest.Key}
	tests := map[string]struct {
		provider Provider
		env      []string
		header   string
	}{
		"a key of the environment":         {Provider{}, both[:2], "x-api-key"},
		"a token of the environment":       {Provider{}, both[2:], "Authorization"},
		"both: the key":                    {Provider{}, both, "x-api-key"},
		"both, and the file names a token": {Provider{TokenEnv: "TOKEN"}, append(both, "TOKEN", modeltest.Key), "Authorization"},
		"both, and the file has a key":     {Provider{Key: modeltest.Key}, both, "x-api-key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
			c, err := New(Config{AnthropicBaseURL: s.URL, Providers: map[string]Provider{"anthropic": tt.provider}}, env(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			if c.Default().Provider != KindAnthropic {
				t.Errorf("the default model is %s", c.Default().Name)
			}
			e := c.Default()
			r := model.Request{Model: e.ModelName, Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))}}
			if _, _, err := streamtest.Play(t.Context(), t, e.Model, r); err != nil {
				t.Fatal(err)
			}
			sent := s.Requests()[0].Header
			for _, h := range []string{"x-api-key", "Authorization"} {
				if (sent.Get(h) != "") != (h == tt.header) {
					t.Errorf("sent %v", sent)
				}
			}
		})
	}
}
