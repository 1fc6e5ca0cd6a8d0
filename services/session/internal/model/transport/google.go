package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// Google sends a token of Google's application default credentials, and renews it. It looks for them at the first
// request, because the search may ask the network.
func Google(provider string) Auth {
	s := &googleSource{provider: provider}
	return func(r *http.Request, body []byte) error {
		token, err := s.token()
		if err != nil {
			return err
		}
		return Bearer(token)(r, body)
	}
}

type googleSource struct {
	provider string
	mu       sync.Mutex
	found    oauth2.TokenSource
}

func (s *googleSource) token() (string, error) {
	source, err := s.find()
	if err != nil {
		return "", noCredentials(s.provider, "Google", "set GOOGLE_APPLICATION_CREDENTIALS in the server's environment to a file with credentials, or auth-token-env for the provider", err)
	}
	token, err := source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		return "", noCredentials(s.provider, "Google", "check the credentials and what they may use", err)
	case err != nil:
		return "", &model.Error{Kind: model.Unavailable, Message: fmt.Sprintf("Google gives no token for the model provider %s at the moment", s.provider), Err: err}
	}
	return token.AccessToken, nil
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

func noCredentials(provider, of, do string, err error) error {
	return &model.Error{Kind: model.Authentication, Message: fmt.Sprintf("the model provider %s has no usable credentials of %s: %s", provider, of, do), Err: err}
}
