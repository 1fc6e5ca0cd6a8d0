package egress

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Credential is a secret that the operator configures and the proxy puts into requests.
type Credential struct {
	// Hosts are the hosts that may get it: names, or `*.` and a name.
	Hosts []string `key:"hosts" help:"hosts that may get the secret: names, or *.name"`
	// Header is the header that carries it; empty means Authorization.
	Header string `key:"header" help:"header that carries the secret; empty: Authorization"`
	// Prefix precedes it, such as `Bearer ` with its space.
	Prefix string `key:"prefix" help:"text before the secret, such as Bearer with a space behind it"`
	// Username makes it the password of basic authentication.
	Username string `key:"username" help:"makes the secret the password of basic authentication for this user"`
	// Secret is the secret itself. If empty, File holds it.
	Secret config.Secret `key:"secret" help:"the secret; empty: file holds it"`
	// File holds the secret. It is read at each use, so it may be changed.
	File string `key:"file" help:"file that holds the secret; it is read at each use"`
}

type credential struct {
	Credential
	name  string
	hosts []pattern
}

func compileCredentials(all map[string]Credential) (map[string]*credential, error) {
	made := map[string]*credential{}
	var faults []error
	for name, c := range all {
		one, err := compileCredential(name, c)
		if err != nil {
			faults = append(faults, fmt.Errorf("credential %q: %w", name, err))
		}
		made[name] = one
	}
	return made, errors.Join(faults...)
}

func compileCredential(name string, c Credential) (*credential, error) {
	var faults []error
	made := &credential{Credential: c, name: name}
	for _, h := range c.Hosts {
		p, err := parsePattern(h)
		if err == nil && p.any {
			err = errors.New("a secret cannot be for every host")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("hosts: %w", err))
		}
		made.hosts = append(made.hosts, p)
	}
	if len(c.Hosts) == 0 {
		faults = append(faults, errors.New("hosts: name at least one host that may get it"))
	}
	if made.Header == "" {
		made.Header = "Authorization"
	}
	made.Header = http.CanonicalHeaderKey(made.Header)
	if !httpguts.ValidHeaderFieldName(made.Header) || slices.Contains(reserved, made.Header) {
		faults = append(faults, fmt.Errorf("header: %q cannot carry a credential", made.Header))
	}
	if !httpguts.ValidHeaderFieldValue(c.Prefix) || !httpguts.ValidHeaderFieldValue(c.Username) || strings.Contains(c.Username, ":") {
		faults = append(faults, errors.New("prefix, username: they have characters that a header cannot have"))
	}
	if c.Prefix != "" && c.Username != "" {
		faults = append(faults, errors.New("prefix, username: only one of them"))
	}
	if (c.Secret == "") == (c.File == "") {
		faults = append(faults, errors.New("secret, file: exactly one of them"))
	} else if _, err := made.value(); err != nil {
		faults = append(faults, err)
	}
	return made, errors.Join(faults...)
}

// reserved headers define how a request is framed or where it goes.
var reserved = []string{
	"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

func (c *credential) covers(p pattern) bool {
	return slices.ContainsFunc(c.hosts, func(h pattern) bool { return h.covers(p) })
}

func (c *credential) fits(t target) bool {
	return slices.ContainsFunc(c.hosts, func(h pattern) bool { return h.matches(t) })
}

// value returns the header's value. An error never contains a part of the secret.
func (c *credential) value() (string, error) {
	secret := string(c.Secret)
	if c.File != "" {
		b, err := os.ReadFile(c.File)
		if err != nil {
			return "", fmt.Errorf("read the secret's file: %w", err)
		}
		secret = strings.TrimSpace(string(b))
	}
	switch {
	case secret == "":
		return "", errors.New("the secret is empty")
	case c.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+secret)), nil
	case !httpguts.ValidHeaderFieldValue(secret):
		return "", errors.New("the secret has characters that a header cannot have")
	}
	return c.Prefix + secret, nil
}

// injection is a header with a credential; the zero value means none.
type injection struct{ name, value string }

// put sets the header. It replaces the client's header of that name, and of names that a server may confuse
// with it.
func (i injection) put(h http.Header) {
	if i.name == "" {
		return
	}
	same := folded(i.name)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return folded(name) == same })
	h[i.name] = []string{i.value}
}

// secretFor returns the credential that a rule puts into requests to a target.
func (p *Proxy) secretFor(r *rule, t target) (injection, error) {
	if r.Credential == "" {
		return injection{}, nil
	}
	c := p.credentials[r.Credential]
	if c == nil || !c.fits(t) {
		return injection{}, deny("rule %q has a credential that is not meant for %s", r.Name, t.host())
	}
	v, err := c.value()
	if err != nil {
		p.o.Log.Error("a credential of egress cannot be read", "credential", c.name, "error", err)
		return injection{}, &RefusalError{Outcome: Failed, Message: fmt.Sprintf("the credential %q cannot be read: see the service's log", r.Credential)}
	}
	return injection{name: c.Header, value: v}, nil
}
