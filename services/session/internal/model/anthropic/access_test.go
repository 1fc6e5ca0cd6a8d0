package anthropic

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestVersionsAndCredentials(t *testing.T) {
	for _, version := range []string{"", Version2023, Version2026} {
		for name, change := range map[string]func(*config){
			"a key":   func(c *config) {},
			"a token": func(c *config) { c.Key, c.Token = "", c.Key },
		} {
			t.Run(name+" in version "+version, func(t *testing.T) {
				s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
				_, text, err := streamtest.Play(t.Context(), t, newModel(s, change, func(c *config) { c.Version = version }), ask("hi"))
				if err != nil || text != "ok" {
					t.Fatalf("got %q, %v, %v", text, err, s.Refused())
				}
				h := s.Requests()[0].Header
				want := version
				if want == "" {
					want = Version2023
				}
				if h.Get("anthropic-version") != want || (h.Get("x-api-key") == "") == (h.Get("Authorization") == "") {
					t.Errorf("sent %v", h)
				}
				for header := range h {
					if strings.HasPrefix(header, "X-Stainless-") {
						t.Errorf("the request describes this machine: %s: %s", header, h.Get(header))
					}
				}
			})
		}
	}
}

func TestRefusedToken(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{}))
	_, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *config) { c.Key, c.Token = "", "tok-wrong" }), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Authentication || strings.Contains(err.Error(), "tok-wrong") {
		t.Errorf("got %v", err)
	}
}
