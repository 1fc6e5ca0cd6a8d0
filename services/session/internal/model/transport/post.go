package transport

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Auth puts a credential on a request with the given body. It may ask the network, within the request's context.
type Auth func(r *http.Request, body []byte) error

// Bearer sends a token; an empty one is not sent.
func Bearer(token string) Auth {
	return func(r *http.Request, _ []byte) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}
}

// Header sends a key in a header of its own; an empty one is not sent.
func Header(name, key string) Auth {
	return func(r *http.Request, _ []byte) error {
		if key != "" {
			r.Header.Set(name, key)
		}
		return nil
	}
}

// Address returns the address below a base URL. It escapes each part of the path and keeps the query of the base, such
// as the `api-version` of some servers.
func Address(base string, path ...string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("the base URL: %w", err)
	}
	parts := make([]string, len(path))
	for i, p := range path {
		// Some servers cut a part at its semicolon, and it may then be one of these.
		if name, _, _ := strings.Cut(p, ";"); slices.Contains([]string{"", ".", ".."}, name) {
			return "", fmt.Errorf("%q cannot be a part of an address", p)
		}
		parts[i] = url.PathEscape(p)
	}
	return u.JoinPath(parts...).String(), nil
}

// Post sends a body of JSON once, with the watched context. It returns when the answer begins; the caller closes its body. An
// error status becomes a *model.Error.
func (w *Watch) Post(watched context.Context, address string, header http.Header, auth Auth, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(watched, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "fairlead")
	if err := auth(r, body); err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	return w.answered(resp)
}
