package provider_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/sse"
)

func TestAReaderFindsEveryTokenWithItsTimes(t *testing.T) {
	s := httptest.NewServer(provider.Handler())
	defer s.Close()
	for path, last := range map[string]string{"/v1/messages": "message_stop", "/v1/responses": "response.completed"} {
		t.Run(path, func(t *testing.T) { readTokens(t, s.URL+path, last) })
	}
}

func readTokens(t *testing.T, url, last string) {
	plan := provider.Plan{Tokens: 5, Every: time.Millisecond, First: time.Millisecond}
	got, err := sse.Read(t.Context(), http.MethodPost, url, `{"messages":[{"content":"`+plan.Prompt()+`"}]}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tokens) != 5 || got.Last != last {
		t.Fatalf("%d tokens, the last event is %q", len(got.Tokens), got.Last)
	}
	if got.Arrived.Before(got.Begun) || got.Tokens[0].Sent.Sub(got.Arrived) < plan.First {
		t.Errorf("begun %v, arrived %v, first sent %v", got.Begun, got.Arrived, got.Tokens[0].Sent)
	}
	for i, token := range got.Tokens {
		if token.Received.Before(token.Sent) {
			t.Errorf("token %d was received before it was sent", i)
		}
	}
}

func TestARequestWithoutAPlanIsRefused(t *testing.T) {
	s := httptest.NewServer(provider.Handler())
	defer s.Close()
	if _, err := sse.Open(t.Context(), http.MethodPost, s.URL+"/v1/messages", `{}`); err == nil {
		t.Error("it was answered")
	}
}
