package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// Issued is what an OpenID provider gave at a login.
type Issued struct {
	Issuer   string        `json:"issuer"`
	ClientID string        `json:"clientId"`
	TokenURL string        `json:"tokenUrl"`
	Token    *oauth2.Token `json:"token"`
	IDToken  string        `json:"idToken,omitempty"`
}

// Bearer returns what Fairlead can check: the access token if it is a JWT, otherwise the ID token.
func (i *Issued) Bearer() string {
	if strings.Count(i.Token.AccessToken, ".") == 2 || i.IDToken == "" {
		return i.Token.AccessToken
	}
	return i.IDToken
}

func (i *Issued) config() *oauth2.Config {
	return &oauth2.Config{ClientID: i.ClientID, Endpoint: oauth2.Endpoint{TokenURL: i.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}
}

// take keeps a new token, and its ID token if it has one.
func (i *Issued) take(t *oauth2.Token) {
	if text, ok := t.Extra("id_token").(string); ok {
		i.IDToken = text
	}
	i.Token = t
}

// loginTimeout bounds each request to a provider, and loginWait the time until a person has confirmed.
const (
	loginTimeout = 30 * time.Second
	loginWait    = 15 * time.Minute
)

// Login logs in at a provider: a person confirms a code in a browser, on any device (RFC 8628).
func Login(ctx context.Context, issuer, clientID string, out io.Writer) (*Issued, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: loginTimeout}), loginWait)
	defer cancel()
	found, err := discover(ctx, issuer)
	if err != nil {
		return nil, err
	}
	i := &Issued{Issuer: issuer, ClientID: clientID, TokenURL: found.Token}
	conf := i.config()
	conf.Endpoint.DeviceAuthURL, conf.Scopes = found.Device, []string{"openid", "profile", "email", "offline_access"}
	code, err := conf.DeviceAuth(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a login at %s: %w", issuer, err)
	}
	fmt.Fprintf(out, "Open %s and enter the code %s\n", code.VerificationURI, code.UserCode)
	if code.VerificationURIComplete != "" {
		fmt.Fprintf(out, "or open %s\n", code.VerificationURIComplete)
	}
	token, err := conf.DeviceAccessToken(ctx, code)
	if err != nil {
		return nil, fmt.Errorf("log in at %s: %w", issuer, err)
	}
	i.take(token)
	return i, nil
}

// endpoints are the addresses that a provider publishes.
type endpoints struct {
	Issuer string `json:"issuer"`
	Device string `json:"device_authorization_endpoint"`
	Token  string `json:"token_endpoint"`
}

// discover reads a provider's description.
func discover(ctx context.Context, issuer string) (endpoints, error) {
	var e endpoints
	where := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, http.NoBody)
	if err != nil {
		return e, terminal.Usage("--issuer %q is not a URL", issuer)
	}
	resp, err := (&http.Client{Timeout: loginTimeout}).Do(req)
	if err != nil {
		return e, fmt.Errorf("read the description of the provider: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	if resp.StatusCode != http.StatusOK {
		return e, fmt.Errorf("%s answers %s, so it is not an OpenID provider", where, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&e); err != nil {
		return e, fmt.Errorf("%s is not the description of an OpenID provider: %w", where, err)
	}
	switch {
	case e.Issuer != issuer:
		return e, fmt.Errorf("the provider at %s calls itself %q: use that as --issuer", issuer, e.Issuer)
	case e.Device == "" || e.Token == "":
		return e, errors.New("the provider offers no login by a code on another device; make a key instead, with `fairlead keys create`")
	}
	return e, nil
}

// refreshed returns the bearer credential of a login, renewed when it has ended. A renewed one is kept in the file.
func (c *Credentials) refreshed(server string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		i := c.Servers[server].Login
		if i.Token.Valid() {
			return i.Bearer(), nil
		}
		if i.Token.RefreshToken == "" {
			return "", fmt.Errorf("the login at %s has ended: log in again with `fairlead login --server %s --issuer %s`", i.Issuer, server, i.Issuer)
		}
		ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: loginTimeout})
		token, err := i.config().TokenSource(ctx, i.Token).Token()
		if err != nil {
			return "", fmt.Errorf("renew the login at %s: %w; log in again with `fairlead login --server %s --issuer %s`", i.Issuer, err, server, i.Issuer)
		}
		i.take(token)
		return i.Bearer(), c.Write()
	}
}
