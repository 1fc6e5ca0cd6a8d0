package catalog

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestSamplingIsSent(t *testing.T) {
	step := modeltest.Step{Text: []string{"ok"}}
	messages, chat := modeltest.Anthropic(t, modeltest.Sequence(step)), modeltest.OpenAI(t, modeltest.Sequence(step))
	c, err := New(Config{
		Providers: map[string]Provider{
			"a": {Kind: KindAnthropic, BaseURL: messages.URL, Key: modeltest.Key}, "o": {Kind: KindOpenAI, BaseURL: chat.URL, Key: modeltest.Key},
		},
		Models: map[string]Limits{"a:m": {Temperature: "0", TopP: "0.5"}, "o:m": {Temperature: "0", TopP: "0.5"}},
	}, env())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*modeltest.Server{"a": messages, "o": chat} {
		for _, sampled := range []bool{true, false} {
			e, err := c.Resolve(map[bool]string{true: name + ":m", false: name + ":other"}[sampled])
			if err != nil {
				t.Fatal(err)
			}
			r := model.Request{Model: e.ModelName, Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))}}
			r.Temperature, r.TopP = e.Sampling()
			if _, _, err := streamtest.Play(t.Context(), t, e.Model, r); err != nil {
				t.Fatal(err)
			}
			all := s.Requests()
			body := all[len(all)-1].Body
			temperature, sent := body["temperature"]
			if sent != sampled || sampled && (temperature != 0.0 || body["top_p"] != 0.5) {
				t.Errorf("%s sends %v and %v", e.Name, temperature, body["top_p"])
			}
		}
	}
}
