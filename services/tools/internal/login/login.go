// Package login logs users in to MCP servers by OAuth, and keeps their tokens.
//
// A login begins on one replica and may end on any: what it needs is stored, encrypted, by the
// digest of its state. A token belongs to one user of one tenant and to one server. No error or
// log has a token, a code or a state.
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

const (
	// loginTime is how long a user may take to log in.
	loginTime = 10 * time.Minute
	// early is how long before its end a token is refreshed.
	early = 30 * time.Second
	// requestTimeout bounds one exchange with an authorization server.
	requestTimeout = 20 * time.Second
)

// Errors of logins.
var (
	// ErrNotConfigured says that the operator has not configured logins.
	ErrNotConfigured = errors.New("logins to MCP servers are not configured")
	// ErrRefused says that a login is unknown, used or too old, or was refused.
	ErrRefused = errors.New("the login is refused")
)

// ErrImpossible is any ImpossibleError.
var ErrImpossible = errors.New("the user cannot log in to the MCP server")

// ImpossibleError says why a user cannot log in to a server.
type ImpossibleError struct{ Why string }

// Error says why.
func (e *ImpossibleError) Error() string { return e.Why }

// Is reports whether target is ErrImpossible.
func (*ImpossibleError) Is(target error) bool { return target == ErrImpossible }

// Config configures Logins.
type Config struct {
	Store store.Logins
	// Client reaches servers and their authorization servers. It refuses private addresses.
	Client *http.Client
	// Key encrypts what is stored, and Callback is the URL to which browsers come back.
	// Without them there are no logins.
	Key, Callback string
}

// Logins has the logins of all users.
type Logins struct {
	Config
	sealer sealer
	locks  locks
}

// New returns the logins.
func New(c Config) (*Logins, error) {
	s, err := newSealer(c.Key)
	return &Logins{Config: c, sealer: s, locks: locks{held: map[store.TokenKey]*lock{}}}, err
}

// Owner is a user of a tenant.
type Owner struct{ Tenant, User string }

// begun is a login that has begun.
type begun struct {
	Owner
	Server   string
	Resource string // the key of the token
	Verifier string
	Grant    grant
}

// grant is what a token comes from.
type grant struct {
	Issuer   string
	IssParam bool // the authorization server names itself when it sends the user back
	Audience string
	ClientID string
	Secret   string
	Style    oauth2.AuthStyle
	TokenURL string
	Scopes   []string
}

// kept is a token with what it came from.
type kept struct {
	Grant grant
	Token *oauth2.Token
	// Wanted are the scopes that the server has asked for since.
	Wanted []string
}

// ResourceOf returns the name of a server among a user's tokens: its address without a query,
// which may have a secret.
func ResourceOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
}

func (o Owner) key(resource string) store.TokenKey {
	return store.TokenKey{Tenant: o.Tenant, User: o.User, Resource: resource}
}

func purposeOf(k store.TokenKey) string {
	return "token\x00" + k.Tenant + "\x00" + k.User + "\x00" + k.Resource
}

// Begin begins a login, and returns the page for the user's browser.
func (l *Logins) Begin(ctx context.Context, o Owner, s *commonv1.McpServer) (page string, until time.Time, err error) {
	switch {
	case l.Key == "" || l.Callback == "":
		return "", until, ErrNotConfigured
	case s.GetHttp() == nil:
		return "", until, &ImpossibleError{"a server in the sandbox takes its credentials from its environment"}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resource := ResourceOf(s.GetHttp().GetUrl())
	before, _, err := l.read(ctx, o.key(resource))
	if err != nil && !errors.Is(err, store.ErrNoLogin) {
		return "", until, err
	}
	found, err := l.discover(ctx, s.GetHttp(), before)
	if err != nil {
		return "", until, err
	}
	login := begun{Owner: o, Server: s.GetName(), Resource: resource, Verifier: oauth2.GenerateVerifier(), Grant: found.grant}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	state := base64.RawURLEncoding.EncodeToString(secret)
	sealed, err := l.sealer.seal("login", login)
	if err != nil {
		return "", until, err
	}
	until = time.Now().Add(loginTime)
	if err := l.Store.PutLogin(ctx, digest(state), sealed, until); err != nil {
		return "", until, err
	}
	c := login.Grant.config(l.Callback)
	c.Endpoint.AuthURL = found.page
	return c.AuthCodeURL(state, oauth2.S256ChallengeOption(login.Verifier), oauth2.SetAuthURLParam("resource", login.Grant.Audience)), until, nil
}

func digest(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

func (g grant) config(callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: g.Secret, RedirectURL: callback, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.Style},
	}
}

// Finished is a login that has ended well.
type Finished struct {
	Owner
	Server, Resource string
}

// Answer is what an authorization server sent with the user's browser.
type Answer struct{ State, Code, Iss, Error string }

// Finish ends a login, and returns the name of its server.
func (l *Logins) Finish(ctx context.Context, a Answer) (of Finished, err error) {
	sealed, err := l.Store.TakeLogin(ctx, digest(a.State))
	if errors.Is(err, store.ErrNoLogin) {
		return of, ErrRefused
	}
	if err != nil {
		return of, err
	}
	var login begun
	if err := l.sealer.open("login", sealed, &login); err != nil {
		return of, err
	}
	g := login.Grant
	switch { // the issuer comes first: another server's answer says nothing of this login
	case a.Iss != "" && a.Iss != g.Issuer, a.Iss == "" && g.IssParam:
		return of, fmt.Errorf("%w: it was answered by another authorization server than the one that was asked", ErrRefused)
	case a.Error != "" || a.Code == "":
		return of, fmt.Errorf("%w by the authorization server", ErrRefused)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, l.Client), requestTimeout)
	defer cancel()
	token, err := g.config(l.Callback).Exchange(ctx, a.Code, oauth2.VerifierOption(login.Verifier), oauth2.SetAuthURLParam("resource", g.Audience))
	if err != nil {
		return of, fmt.Errorf("%w: the authorization server gave no token", ErrRefused) // the cause may have the code in it
	}
	k := login.key(login.Resource)
	if sealed, err = l.sealer.seal(purposeOf(k), kept{Grant: g, Token: token}); err != nil {
		return of, err
	}
	return Finished{login.Owner, login.Server, login.Resource}, l.Store.PutToken(ctx, k, sealed, nil)
}

// Forget deletes a user's token for a server.
func (l *Logins) Forget(ctx context.Context, o Owner, s *commonv1.McpServer) error {
	return l.Store.DeleteToken(ctx, o.key(ResourceOf(s.GetHttp().GetUrl())), nil)
}

func (l *Logins) read(ctx context.Context, k store.TokenKey) (kept, []byte, error) {
	var t kept
	sealed, err := l.Store.Token(ctx, k)
	if err != nil {
		return t, nil, err
	}
	return t, sealed, l.sealer.open(purposeOf(k), sealed, &t)
}

// Token returns the access token of a user for a server; empty if there is none, and the user must
// log in. refused is an access token that the server did not take.
func (l *Logins) Token(ctx context.Context, o Owner, endpoint, refused string) (string, error) {
	if l.Key == "" {
		return "", nil
	}
	k := o.key(ResourceOf(endpoint))
	release, err := l.locks.acquire(ctx, k) // two uses of one refresh token look like a theft
	if err != nil {
		return "", err
	}
	defer release()
	t, sealed, err := l.read(ctx, k)
	switch {
	case errors.Is(err, store.ErrNoLogin):
		return "", nil
	case err != nil:
		return "", err
	case t.Token.AccessToken != refused && (t.Token.Expiry.IsZero() || time.Until(t.Token.Expiry) > early):
		return t.Token.AccessToken, nil
	}
	return l.refresh(ctx, k, t, sealed)
}

// refresh exchanges the refresh token. Without one, or when it is refused, the user must log in again.
func (l *Logins) refresh(ctx context.Context, k store.TokenKey, t kept, sealed []byte) (string, error) {
	old := &oauth2.Token{RefreshToken: t.Token.RefreshToken}
	var refusal *oauth2.RetrieveError
	fresh, err := (*oauth2.Token)(nil), error(nil)
	if old.RefreshToken != "" {
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, l.resourceClient(t.Grant.Audience)), requestTimeout)
		defer cancel()
		fresh, err = t.Grant.config(l.Callback).TokenSource(ctx, old).Token()
	}
	switch {
	case err == nil && fresh != nil:
		t.Token = fresh
		again, err := l.sealer.seal(purposeOf(k), t)
		if err != nil {
			return "", err
		}
		if err := l.Store.PutToken(ctx, k, again, sealed); errors.Is(err, store.ErrConflict) {
			return l.current(ctx, k) // another replica was faster, or the user has logged in again
		} else if err != nil {
			return "", err
		}
		return fresh.AccessToken, nil
	case err == nil, errors.As(err, &refusal) && refusal.Response.StatusCode < 500:
		if now, _ := l.current(ctx, k); now != "" && now != t.Token.AccessToken {
			return now, nil
		}
		return "", l.Store.DeleteToken(ctx, k, sealed)
	default:
		return "", errors.New("the authorization server does not refresh the token now")
	}
}

func (l *Logins) current(ctx context.Context, k store.TokenKey) (string, error) {
	t, _, err := l.read(ctx, k)
	if err != nil {
		return "", err
	}
	return t.Token.AccessToken, nil
}

// Want notes the scopes that a server asks for beyond those of the user's token; the next login asks
// for all of them.
func (l *Logins) Want(ctx context.Context, o Owner, endpoint string, scopes []string) error {
	k := o.key(ResourceOf(endpoint))
	t, sealed, err := l.read(ctx, k)
	if err != nil {
		return err
	}
	all := union(t.Wanted, scopes)
	if slices.Equal(all, t.Wanted) {
		return nil
	}
	t.Wanted = all
	again, err := l.sealer.seal(purposeOf(k), t)
	if err != nil {
		return err
	}
	return l.Store.PutToken(ctx, k, again, sealed)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
