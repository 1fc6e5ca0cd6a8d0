package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// provider is an OpenID provider with the flow for devices (RFC 8628). Access tokens are opaque, so that the ID
// token is the credential.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	polls  int
	issued int
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, code int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "device_authorization_endpoint": p.URL + "/device", "token_endpoint": p.URL + "/token"})
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "fairlead" || !strings.Contains(r.FormValue("scope"), "openid") {
			t.Errorf("device request %v", r.Form)
		}
		answer(w, http.StatusOK, map[string]any{"device_code": "dc", "user_code": "WXYZ-1234", "verification_uri": p.URL + "/code", "expires_in": 60, "interval": 1})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch r.FormValue("grant_type") {
		case "urn:ietf:params:oauth:grant-type:device_code":
			if p.polls++; r.FormValue("device_code") != "dc" || p.polls < 2 {
				answer(w, http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
				return
			}
		case "refresh_token":
			if r.FormValue("refresh_token") != fmt.Sprintf("refresh-%d", p.issued) {
				answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
				return
			}
		}
		p.issued++
		// Each token has ended already, so that the next call renews it.
		answer(w, http.StatusOK, map[string]any{
			"access_token": "opaque", "token_type": "Bearer", "expires_in": 1,
			"refresh_token": fmt.Sprintf("refresh-%d", p.issued), "id_token": fmt.Sprintf("header.claims.%d", p.issued),
		})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func TestALoginAtAProviderIsKeptAndRenewed(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	d := &door{users: map[string]string{"header.claims.1": "ann", "header.claims.2": "ann", "header.claims.3": "ann"}}
	server := d.open(t)
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	out, errs, code := fairlead(t.Context(), "", env, "login", "--server", server, "--issuer", p.URL)
	if code != 0 || !strings.Contains(errs, "WXYZ-1234") || !strings.Contains(errs, p.URL+"/code") || !strings.Contains(out, "users/ann") {
		t.Fatalf("login: %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"header.claims.2", "header.claims.3"} {
		if out, errs, code := fairlead(t.Context(), "", env, "whoami", "--server", server); code != 0 {
			t.Fatalf("whoami: %s%s", out, errs)
		}
		text, err := os.ReadFile(filepath.Join(env["XDG_CONFIG_HOME"], "fairlead", "credentials.json"))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the renewed token is not kept: %v, %s", err, text)
		}
	}
	p.mu.Lock()
	p.issued = 100 // the provider knows the refresh token no more
	p.mu.Unlock()
	if out, errs, code := fairlead(t.Context(), "", env, "whoami", "--server", server); code != 1 || !strings.Contains(errs, "fairlead login --server "+server) {
		t.Errorf("a login that has ended: %s%s", out, errs)
	}
	if out, errs, code := fairlead(t.Context(), "", env, "login", "--server", server, "--issuer", p.URL+"/"); code != 1 || !strings.Contains(errs, "calls itself") {
		t.Errorf("another name of the issuer: %s%s", out, errs)
	}
}
