package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// received is a request as a server gets it.
type received struct {
	Method, Path, Query string
	Header              http.Header
	Body                map[string]any
}

var signature = regexp.MustCompile(`Credential=[^,]*|Signature=[0-9a-f]*`)

// receive starts a server that keeps the last request.
func receive(t *testing.T) (url string, last *received) {
	last = &received{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header.Clone()
		h.Set("Authorization", signature.ReplaceAllString(h.Get("Authorization"), ""))
		h.Del("X-Amz-Date")
		*last = received{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: h}
		if err := json.Unmarshal(body, &last.Body); err != nil {
			t.Errorf("the body is no JSON: %v", err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(s.Close)
	return s.URL, last
}

// sendBySDK sends a request of ours with the vendor's client.
func sendBySDK(ctx context.Context, t *testing.T, a Access, modelName string) {
	t.Helper()
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "fairlead"), option.WithHeader("anthropic-version", a.Version),
	}
	for _, name := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+name)) // they describe the machine
	}
	switch {
	case a.Platform == Vertex:
		token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: a.Token})
		opts = append(opts, vertex.WithCredentials(ctx, a.Region, a.Project, &google.Credentials{TokenSource: token}))
	case a.Platform == Bedrock:
		c := aws.Config{Region: a.Region, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: modeltest.AWSKeyID, SecretAccessKey: modeltest.AWSSecret}, nil
		})}
		if a.Token != "" {
			c.BearerAuthTokenProvider, c.AuthSchemePreference = bedrock.NewStaticBearerTokenProvider(a.Token), []string{"httpBearerAuth"}
		}
		opts = append(opts, bedrock.WithConfig(c))
	case a.Token != "":
		opts = append(opts, option.WithAuthToken(a.Token))
	default:
		opts = append(opts, option.WithHeader("x-api-key", a.Key))
	}
	body, err := json.Marshal(map[string]any{"model": modelName, "max_tokens": 9, "stream": true, "messages": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	var raw *http.Response
	client := sdk.NewClient(append(opts, option.WithBaseURL(a.BaseURL))...)
	if err := client.Post(ctx, "v1/messages", body, &raw); err != nil {
		t.Fatal(err)
	}
	_ = raw.Body.Close()
}

// sendByUs sends the same request with our own code.
func sendByUs(ctx context.Context, t *testing.T, a Access, modelName string) {
	t.Helper()
	c := Connect(a) //nolint:contextcheck // credentials outlive a request
	body := map[string]any{"max_tokens": 9, "messages": []any{}}
	if a.Platform != Bedrock {
		body["stream"] = true
	}
	if a.Platform == "" {
		body["model"] = modelName
	} else {
		body["anthropic_version"] = a.Version // of the newer form, which both write alike
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	watched, w := transport.Begin(ctx, "test", "", 0)
	defer w.End()
	raw, err := c.post(watched, w, modelName, text)
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Body.Close()
}

// The vendor's SDK is too large for the program, so tests compare what both send.
func TestRequestsAreSentAsTheSDKSendsThem(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", modeltest.AWSKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", modeltest.AWSSecret)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
	for name, a := range map[string]Access{
		"a key":              {Key: "k"},
		"a token":            {Token: "t"},
		"vertex":             {Platform: Vertex, Region: "eu", Project: "my-project", Token: "t"},
		"bedrock":            {Platform: Bedrock, Region: "eu-central-1"},
		"bedrock by a token": {Platform: Bedrock, Region: "eu-central-1", Token: "t"},
	} {
		for _, modelName := range []string{"claude-sonnet-5-5@20261001", "eu.anthropic.claude:0", "arn:aws:bedrock:eu-central-1:1:inference-profile/x y"} {
			t.Run(name+" "+modelName, func(t *testing.T) {
				url, last := receive(t)
				a.Version = Version2026
				a.BaseURL = url + "/"
				if a.Platform == "" {
					a.BaseURL = url + "/below/here"
				}
				sendBySDK(t.Context(), t, a, modelName)
				want := *last
				sendByUs(t.Context(), t, a, modelName)
				if diff := cmp.Diff(want, *last); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestAModelIsOnePartOfTheAddress(t *testing.T) {
	c := Connect(Access{Platform: Bedrock, Region: "us-east-1"})
	for _, name := range []string{"", ".", "..", "..;x", ";x"} {
		if address, err := c.address(name); err == nil {
			t.Errorf("%q has the address %s", name, address)
		}
	}
	for region, want := range map[string]string{
		"global": "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models/m:streamRawPredict",
		"eu":     "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/m:streamRawPredict",
		"us-x1":  "https://us-x1-aiplatform.googleapis.com/v1/projects/p/locations/us-x1/publishers/anthropic/models/m:streamRawPredict",
	} {
		if got, err := Connect(Access{Platform: Vertex, Region: region, Project: "p"}).address("m"); err != nil || got != want {
			t.Errorf("%s: got %s, %v", region, got, err)
		}
	}
	if got, _ := c.address("a/b"); got != "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%2Fb/invoke-with-response-stream" {
		t.Errorf("got %s", got)
	}
	if got, _ := Connect(Access{BaseURL: "https://h/x?api-version=2"}).address("m"); got != "https://h/x/v1/messages?api-version=2" {
		t.Errorf("got %s", got)
	}
}
