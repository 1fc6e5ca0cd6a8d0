package catalog

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestAProviderChoosesItsAPI(t *testing.T) {
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"hi"}}))
	for api, says := range map[string]string{"responses": "", "chat": "nothing at this address", "": "nothing at this address", "soap": "api"} {
		c := Defaults()
		c.Providers = map[string]Provider{"p": {Kind: KindOpenAI, API: api, BaseURL: s.URL, Key: modeltest.Key}}
		c.Models = map[string]Limits{"p:m": {ContextTokens: 1000}}
		cat, err := New(c, func(string) string { return "" })
		if err == nil {
			entry, fault := cat.Resolve("p:m")
			if fault != nil {
				t.Fatal(fault)
			}
			_, _, err = streamtest.Play(t.Context(), t, entry.Model, model.Request{Model: "m", Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))}})
		}
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("api %q: %v", api, err)
		}
	}
}
