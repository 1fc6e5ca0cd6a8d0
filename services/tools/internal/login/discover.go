package login

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// found is the authorization server of a server.
type found struct {
	grant
	page string // where users log in
}

// discover finds the authorization server of a server, and the client with which Fairlead is known
// there. before is the user's token, if there is one.
func (l *Logins) discover(ctx context.Context, s *commonv1.McpHttp, before kept) (found, error) {
	challenges, err := l.challenge(ctx, s.GetUrl())
	if err != nil {
		return found{}, err
	}
	protected := l.metadata(ctx, s.GetUrl(), challenges)
	if protected == nil {
		return found{}, &ImpossibleError{"the server does not say which authorization server it trusts"}
	}
	issuer := protected.AuthorizationServers[0]
	server, err := auth.GetAuthServerMetadata(ctx, issuer, l.Client)
	if err != nil || server == nil {
		return found{}, &ImpossibleError{"the metadata of the authorization server " + issuer + " cannot be used"}
	}
	out := found{page: server.AuthorizationEndpoint, grant: grant{
		Issuer: server.Issuer, IssParam: server.AuthorizationResponseIssParameterSupported, Audience: protected.Resource, TokenURL: server.TokenEndpoint,
	}}
	switch {
	case !slices.Contains(server.CodeChallengeMethodsSupported, "S256"):
		return found{}, &ImpossibleError{"the authorization server does not offer PKCE with S256"}
	case out.page == "" || out.TokenURL == "":
		return found{}, &ImpossibleError{"the authorization server has no page for logins, or no tokens"}
	}
	out.Scopes = scopes(s.GetOauth(), challenges, protected, server)
	if before.Grant.Issuer == out.Issuer {
		out.Scopes = union(out.Scopes, union(before.Grant.Scopes, before.Wanted))
	}
	return out, l.identify(ctx, &out, s.GetOauth(), server, before)
}

// challenge asks the server without a token, and returns how it refuses.
func (l *Logins) challenge(ctx context.Context, endpoint string) ([]oauthex.Challenge, error) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(ping))
	if err != nil {
		return nil, &ImpossibleError{"the server's url is not one"}
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.Client.Do(q)
	if err != nil {
		return nil, &ImpossibleError{"the server cannot be reached"} // the cause has the address
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode < 400 {
		return nil, &ImpossibleError{"the server wants no login"}
	}
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, nil // the well-known addresses remain
	}
	return challenges, nil
}

// metadata returns what the server says of its authorization: at the address of its challenge, or at
// one of the well-known ones. Nil: nothing.
func (l *Logins) metadata(ctx context.Context, endpoint string, challenges []oauthex.Challenge) *oauthex.ProtectedResourceMetadata {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	origin := url.URL{Scheme: u.Scheme, Host: u.Host}
	const wellKnown = "/.well-known/oauth-protected-resource"
	type place struct{ at, resource string }
	var places []place
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append(places, place{at, u.String()}, place{at, origin.String()}, place{at, origin.String() + "/"})
		}
	}
	places = append(places,
		place{origin.String() + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), u.String()},
		place{origin.String() + wellKnown, origin.String()}, place{origin.String() + wellKnown, origin.String() + "/"})
	for _, p := range places {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, p.at, p.resource, l.Client)
		if err == nil && len(m.AuthorizationServers) > 0 {
			return m
		}
	}
	return nil
}

// scopes returns what to ask for: the operator's or user's list, or that of the challenge, or all that the server
// knows.
func scopes(o *commonv1.McpOAuth, challenges []oauthex.Challenge, m *oauthex.ProtectedResourceMetadata, s *oauthex.AuthServerMeta) []string {
	out := slices.Clone(o.GetScopes())
	for _, c := range challenges {
		if len(out) == 0 && c.Scheme == "bearer" {
			out = strings.Fields(c.Params["scope"])
		}
	}
	if len(out) == 0 {
		out = slices.Clone(m.ScopesSupported)
	}
	if slices.Contains(s.ScopesSupported, "offline_access") {
		out = union(out, []string{"offline_access"})
	}
	return out
}

// identify sets the client: the one of the settings, the one that the user's token came from, or a new one.
func (l *Logins) identify(ctx context.Context, f *found, o *commonv1.McpOAuth, s *oauthex.AuthServerMeta, before kept) error {
	switch {
	case o.GetClientId() != "":
		f.ClientID, f.Secret, f.Style = o.GetClientId(), o.GetClientSecret(), style(s.TokenEndpointAuthMethodsSupported)
		return nil
	case before.Grant.Issuer == f.Issuer && before.Grant.ClientID != "":
		f.ClientID, f.Secret, f.Style = before.Grant.ClientID, before.Grant.Secret, before.Grant.Style
		return nil
	case s.ClientIDMetadataDocumentSupported && l.documented(ctx):
		f.ClientID, f.Style = l.clientID(), oauth2.AuthStyleInParams
		return nil
	case s.RegistrationEndpoint == "":
		return &ImpossibleError{"the authorization server registers no clients; register Fairlead there with the redirect " + l.Callback + ", and set oauth.client_id of the server"}
	}
	kind := "web"
	if u, err := url.Parse(l.Callback); err == nil && (u.Hostname() == "localhost" || strings.HasPrefix(u.Hostname(), "127.")) {
		kind = "native"
	}
	r, err := oauthex.RegisterClient(ctx, s.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{l.Callback}, ClientName: "Fairlead", GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: "none", ApplicationType: kind, Scope: strings.Join(f.Scopes, " "),
	}, l.Client)
	if err != nil {
		return &ImpossibleError{"the authorization server refuses to register Fairlead"}
	}
	f.ClientID, f.Secret, f.Style = r.ClientID, r.ClientSecret, oauth2.AuthStyleInParams
	if r.TokenEndpointAuthMethod == "client_secret_basic" {
		f.Style = oauth2.AuthStyleInHeader
	}
	return nil
}

func style(methods []string) oauth2.AuthStyle {
	switch {
	case slices.Contains(methods, "client_secret_post"), slices.Contains(methods, "none"):
		return oauth2.AuthStyleInParams
	case slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	default:
		return oauth2.AuthStyleAutoDetect
	}
}
