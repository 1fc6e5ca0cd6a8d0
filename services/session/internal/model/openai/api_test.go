package openai

import "testing"

func TestTheBaseURLChoosesTheAPI(t *testing.T) {
	for base, want := range map[string]string{
		"": Responses, "https://api.openai.com/v1": Responses, "https://API.openai.com": Responses, "https://eu.api.openai.com/v1/": Responses,
		"http://127.0.0.1:8000/v1": Chat, "https://openrouter.ai/api/v1": Chat, "https://api.openai.com.example/v1": Chat, "https://notapi.openai.com.evil": Chat,
		"https://generativelanguage.googleapis.com/v1beta/openai": Chat, "://": Chat,
	} {
		if got := (Config{BaseURL: base}).api(); got != want {
			t.Errorf("%q: %s, want %s", base, got, want)
		}
	}
	if got := (Config{API: Chat}).api(); got != Chat {
		t.Errorf("a chosen API: %s", got)
	}
}
