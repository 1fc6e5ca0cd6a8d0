package mcp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/fairlead/fairlead/services/tools/internal/login"
)

// Tokens has the tokens of users for servers.
type Tokens interface {
	// Token returns a user's access token; empty if the user must log in. refused is one that
	// the server did not take.
	Token(ctx context.Context, o login.Owner, endpoint, refused string) (string, error)
	// Want notes scopes that a server asks for beyond those of the user's token.
	Want(ctx context.Context, o login.Owner, endpoint string, scopes []string) error
}

// errScope says that the user's token is not enough.
var errScope = errors.New("the server wants further rights of the user; log in to it again")

// bearer adds the user's token to requests.
type bearer struct {
	tokens   Tokens
	owner    login.Owner
	endpoint string
}

// bearerOf returns the tokens of a connection; nil if the server has a header for its users.
func (l *link) bearerOf() *bearer {
	h := l.server.GetHttp()
	for name := range h.GetHeaders() {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	if l.pool.Tokens == nil || l.server.operator { // they have the operator's credentials
		return nil
	}
	return &bearer{tokens: l.pool.Tokens, owner: login.Owner{Tenant: l.first.Ref.Tenant, User: l.first.User}, endpoint: h.GetUrl()}
}

// send sends a request with the token. It sends it once more, with a fresh token, if the server did not take the
// first: a server that asks who the user is has done nothing yet.
func (b *bearer) send(base http.RoundTripper, q *http.Request) (*http.Response, error) {
	token, err := b.tokens.Token(q.Context(), b.owner, b.endpoint, "")
	if err != nil {
		return nil, err
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := base.RoundTrip(q)
	if err != nil || token == "" {
		return resp, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return b.again(base, q, resp, token)
	case http.StatusForbidden:
		if scopes := wanted(resp); scopes != nil {
			_ = resp.Body.Close()
			return nil, errors.Join(errScope, b.tokens.Want(q.Context(), b.owner, b.endpoint, scopes))
		}
	}
	return resp, nil
}

func (b *bearer) again(base http.RoundTripper, q *http.Request, refused *http.Response, token string) (*http.Response, error) {
	fresh, err := b.tokens.Token(q.Context(), b.owner, b.endpoint, token)
	if err != nil || fresh == "" || fresh == token || q.Body != nil && q.GetBody == nil {
		return refused, nil //nolint:nilerr // the server's refusal says more
	}
	_ = refused.Body.Close()
	q = q.Clone(q.Context())
	if q.GetBody != nil {
		if q.Body, err = q.GetBody(); err != nil {
			return nil, err
		}
	}
	q.Header.Set("Authorization", "Bearer "+fresh)
	return base.RoundTrip(q)
}

// wanted returns the scopes that a server asks for beyond those of the token; nil: it refuses for another reason.
func wanted(resp *http.Response) []string {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return append([]string{}, strings.Fields(c.Params["scope"])...)
		}
	}
	return nil
}

// LoggedIn makes the connections of a user to a server try again.
func (p *Pool) LoggedIn(of login.Finished) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		if l.first.User == of.User && l.first.Ref.Tenant == of.Tenant && login.ResourceOf(l.server.GetHttp().GetUrl()) == of.Resource {
			l.show(func(v *view) { v.wants = "" })
			l.nudge()
		}
	}
}

// HTTPClient returns a client that reaches only the addresses that servers may have.
func (p *Pool) HTTPClient() *http.Client {
	return &http.Client{Transport: p.web.guarded, CheckRedirect: redirect}
}
