package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// vertexOption sends requests in the form of Google Vertex AI.
func vertexOption(a Access) option.RequestOption {
	var source oauth2.TokenSource = &googleSource{provider: a.Provider}
	if a.Token != "" {
		source = oauth2.StaticTokenSource(&oauth2.Token{AccessToken: a.Token})
	}
	// The context is that of the SDK's own HTTP client, which our requests replace.
	return vertex.WithCredentials(context.Background(), a.Region, a.Project, &google.Credentials{TokenSource: source})
}

// bedrockOption sends requests in the form of Amazon Bedrock.
func bedrockOption(a Access) option.RequestOption {
	c := aws.Config{Region: a.Region, Credentials: &awsSource{provider: a.Provider, region: a.Region}}
	if a.Token != "" {
		c.BearerAuthTokenProvider, c.AuthSchemePreference = bedrock.NewStaticBearerTokenProvider(a.Token), []string{"httpBearerAuth"}
	}
	return bedrock.WithConfig(c)
}

// googleSource finds Google's application default credentials at the first request:
// the search may ask the network.
type googleSource struct {
	provider string
	mu       sync.Mutex
	found    oauth2.TokenSource
}

// Token implements oauth2.TokenSource.
func (s *googleSource) Token() (*oauth2.Token, error) {
	source, err := s.find()
	if err != nil {
		return nil, noCredentials(s.provider, "Google", "set GOOGLE_APPLICATION_CREDENTIALS in the server's environment to a file with credentials, or auth-token-env for the provider", err)
	}
	token, err := source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		return nil, noCredentials(s.provider, "Google", "check the credentials and what they may use", err)
	case err != nil:
		return nil, &model.Error{Kind: model.Unavailable, Message: fmt.Sprintf("Google gives no token for the model provider %s at the moment", s.provider), Err: err}
	}
	return token, nil
}

func (s *googleSource) find() (oauth2.TokenSource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		// Every later token is fetched with this context, so it is no request's.
		credentials, err := google.FindDefaultCredentials(context.Background(), googleScope)
		if err != nil {
			return nil, err
		}
		s.found = credentials.TokenSource
	}
	return s.found, nil
}

// awsSource finds the credentials of AWS in their usual places at the first request:
// environment, shared files, single sign-on, web identity, container and machine.
type awsSource struct {
	provider, region string
	mu               sync.Mutex
	found            aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (s *awsSource) Retrieve(ctx context.Context) (aws.Credentials, error) {
	source, err := s.find(ctx)
	var c aws.Credentials
	if err == nil {
		c, err = source.Retrieve(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return c, noCredentials(s.provider, "AWS", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, in the server's environment, or auth-token-env for the provider", err)
	}
	return c, err
}

func (s *awsSource) find(ctx context.Context) (aws.CredentialsProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(s.region))
		if err != nil {
			return nil, err
		}
		s.found = c.Credentials
	}
	return s.found, nil
}

func noCredentials(provider, of, do string, err error) error {
	return &model.Error{Kind: model.Authentication, Message: fmt.Sprintf("the model provider %s has no usable credentials of %s: %s", provider, of, do), Err: err}
}
