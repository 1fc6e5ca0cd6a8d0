package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// AWS signs requests to a service in a region with the server's credentials of AWS. It looks for them in their usual
// places at the first request: environment, shared files, single sign-on, web identity, container and machine.
func AWS(provider, service, region string) Auth {
	s := &awsSource{provider: provider, region: region}
	signer := v4.NewSigner()
	return func(r *http.Request, body []byte) error {
		credentials, err := s.retrieve(r.Context())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		if err := signer.SignHTTP(r.Context(), credentials, r, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
			return fmt.Errorf("sign the request: %w", err)
		}
		return nil
	}
}

type awsSource struct {
	provider, region string
	mu               sync.Mutex
	found            aws.CredentialsProvider
}

func (s *awsSource) retrieve(ctx context.Context) (aws.Credentials, error) {
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
		c, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.region))
		if err != nil {
			return nil, err
		}
		s.found = c.Credentials
	}
	return s.found, nil
}
