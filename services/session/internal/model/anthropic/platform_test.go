package anthropic

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// noCloud hides the credentials of the machine.
func noCloud(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none")
	for _, name := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", nowhere)
}

func onVertex(c *config) {
	c.Platform, c.Region, c.Project, c.Key, c.Token = Vertex, "europe-west1", "acme", "", modeltest.Key
}

func onBedrock(c *config) { c.Platform, c.Region, c.Key = Bedrock, "eu-central-1", "" }

func TestPlatforms(t *testing.T) {
	noCloud(t)
	t.Setenv("AWS_ACCESS_KEY_ID", modeltest.AWSKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", modeltest.AWSSecret)
	tests := map[string]struct {
		start  func(testing.TB, modeltest.Script) *modeltest.Server
		change func(*config)
	}{
		"vertex":               {modeltest.Vertex, onVertex},
		"bedrock, signed":      {modeltest.Bedrock, onBedrock},
		"bedrock with a token": {modeltest.Bedrock, func(c *config) { onBedrock(c); c.Token = modeltest.Key }},
	}
	for name, tt := range tests {
		for _, version := range []string{Version2023, Version2026} {
			t.Run(name+" "+version, func(t *testing.T) {
				s := tt.start(t, modeltest.Sequence(modeltest.Step{
					Thinking: "a long thought", Text: []string{"I will ", "look."},
					Calls: []modeltest.Call{{ID: "toolu_1", Name: "LS", Input: `{"path":"/"}`}},
					Usage: modeltest.Usage{Input: 10, Output: 20},
				}))
				r := ask("hi")
				r.Model = "claude-sonnet-5-5@20261001"
				resp, text, err := streamtest.Play(t.Context(), t, newModel(s, tt.change, func(c *config) { c.Version = version }), r)
				if err != nil {
					t.Fatal(err, s.Refused())
				}
				if text != "I will look." || resp.StopReason != "tool_use" || resp.Usage.GetOutputTokens() != 20 || len(s.Refused()) != 0 {
					t.Errorf("got %q, %v, refused %v", text, resp, s.Refused())
				}
				sent := s.Requests()[0]
				if sent.Model != r.Model || sent.Header.Get("x-api-key") != "" || sent.Header.Get("traceparent") != "" {
					t.Errorf("sent %q with %v", sent.Model, sent.Header)
				}
				if signed := strings.HasPrefix(sent.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "); signed != strings.HasSuffix(name, "signed") {
					t.Errorf("sent %v", sent.Header)
				}
			})
		}
	}
}

func TestErrorsOfPlatforms(t *testing.T) {
	noCloud(t)
	tests := map[string]struct {
		start  func(testing.TB, modeltest.Script) *modeltest.Server
		change func(*config)
		step   modeltest.Step
		kind   model.ErrorKind
		midway bool
		say    string
	}{
		"no credentials of AWS":    {modeltest.Bedrock, onBedrock, modeltest.Step{}, model.Authentication, false, "AWS_ACCESS_KEY_ID"},
		"no credentials of Google": {modeltest.Vertex, func(c *config) { onVertex(c); c.Token = "" }, modeltest.Step{}, model.Authentication, false, "GOOGLE_APPLICATION_CREDENTIALS"},
		"a refused token":          {modeltest.Vertex, func(c *config) { onVertex(c); c.Token = "tok-wrong" }, modeltest.Step{}, model.Authentication, false, "refused the key"},
		"a refused bearer token":   {modeltest.Bedrock, func(c *config) { onBedrock(c); c.Token = "tok-wrong" }, modeltest.Step{}, model.Authentication, false, "refused the key"},
		"an overload of bedrock in the stream": {
			modeltest.Bedrock, func(c *config) { onBedrock(c); c.Token = modeltest.Key },
			modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorType: "throttlingException", ErrorMessage: "slow down"}, model.Unavailable, true, "slow down",
		},
		"a refusal of bedrock in the stream": {
			modeltest.Bedrock, func(c *config) { onBedrock(c); c.Token = modeltest.Key },
			modeltest.Step{Text: []string{"a"}, After: -1, Break: modeltest.Fail, ErrorType: "validationException", ErrorMessage: "too odd"}, model.Refused, true, "too odd",
		},
		"a cut stream of bedrock": {
			modeltest.Bedrock, func(c *config) { onBedrock(c); c.Token = modeltest.Key },
			modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Cut}, model.Unavailable, true, "broke off",
		},
		"an overload of vertex": {modeltest.Vertex, onVertex, modeltest.Step{Status: 429, ErrorMessage: "busy"}, model.Unavailable, false, "busy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := tt.start(t, modeltest.Sequence(tt.step))
			_, _, err := streamtest.Play(t.Context(), t, newModel(s, tt.change), ask("hi"))
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Midway != tt.midway || !strings.Contains(e.Message, tt.say) || strings.Contains(err.Error(), "tok-wrong") {
				t.Errorf("got %+v", err)
			}
		})
	}
}
