// Package repository knows Git: which remotes the operator allows, how to call Git so that it does only
// what was asked for, and how to parse its output.
//
// It runs nothing and trusts no output of Git: a repository, its configuration and the remote may all be
// hostile.
package repository

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

var (
	// ErrInvalid means that a URL, a reference or a directory is not valid.
	ErrInvalid = errors.New("not valid")
	// ErrNotAllowed means that the operator does not allow the remote, or not this use.
	ErrNotAllowed = errors.New("not allowed by the operator (sandbox.repositories.remotes)")
)

// Remote is one or several remotes that the operator allows.
type Remote struct {
	// Host is a name, `*.` and a name for all below it, or an address.
	Host string `key:"host" help:"a name, *.name or an address"`
	// Ports of it; none means 443.
	Ports []int `key:"ports" help:"ports of the host; none: 443"`
	// Paths of repositories as globs, with or without `.git`; none means all.
	Paths []string `key:"paths" help:"globs of repositories, with or without .git; none: all"`
	// Credential names a credential of the operator (`egress.credentials`); empty: none.
	Credential string `key:"credential" help:"name of a credential of egress.credentials; empty: none"`
	// Push allows to push.
	Push bool `key:"push" help:"whether sessions may push to the remote"`
	// Addresses are ranges of private addresses that the host may have.
	Addresses []string `key:"addresses" help:"ranges of private addresses that the host may have"`
}

// Remotes are all remotes that the operator allows. They do not change.
type Remotes struct{ all []Remote }

// NewRemotes checks the operator's configuration and reports all its faults.
func NewRemotes(all []Remote, n *egress.Network) (*Remotes, error) {
	var faults []error
	made := &Remotes{}
	for i, r := range all {
		if len(r.Ports) == 0 {
			r.Ports = []int{443}
		}
		if r.Host == "*" || strings.Contains(r.Host, "/") {
			faults = append(faults, fmt.Errorf("remote %d: host %q: a name, *. and a name, or an address", i+1, r.Host))
			continue
		}
		r.Host = strings.ToLower(r.Host)
		if _, err := n.EncodeOperator(r.way(r.Host, r.Paths)); err != nil {
			faults = append(faults, fmt.Errorf("remote %d (%s): %w", i+1, r.Host, err))
		}
		made.all = append(made.all, r)
	}
	return made, errors.Join(faults...)
}

func (r Remote) way(host string, paths []string) egress.Operator {
	return egress.Operator{
		Rules: []egress.Rule{{
			Name: "repository", Host: host, Ports: r.Ports, Methods: []string{"GET", "POST"}, Paths: paths, TLS: egress.Intercept, Credential: r.Credential,
		}},
		Ranges: r.Addresses,
	}
}

// URL is the unambiguous HTTPS address of a repository.
type URL struct {
	Host string
	Port int
	Path string // begins with a slash, and does not end with one
}

var urlForm = regexp.MustCompile(`^https://([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::([0-9]{1,5}))?((?:/[A-Za-z0-9_~@+.-]+)+)/?$`)

// ParseURL parses an address.
func ParseURL(s string) (URL, error) {
	m := urlForm.FindStringSubmatch(s)
	if m == nil || len(s) > 2048 {
		return URL{}, fmt.Errorf("the remote's URL is %w: it must be https://host/path, without user name, query and encoded characters", ErrInvalid)
	}
	u := URL{Host: strings.ToLower(m[1]), Port: 443, Path: m[3]}
	if m[2] != "" {
		u.Port, _ = strconv.Atoi(m[2]) // five digits at most
	}
	if u.Port < 1 || u.Port > 65535 {
		return URL{}, fmt.Errorf("the port of the remote's URL is %w", ErrInvalid)
	}
	for segment := range strings.SplitSeq(u.Path[1:], "/") {
		if segment == "." || segment == ".." {
			return URL{}, fmt.Errorf("the path of the remote's URL is %w: it has segments of dots", ErrInvalid)
		}
	}
	return u, nil
}

// String returns the address for Git.
func (u URL) String() string {
	host := u.Host
	if u.Port != 443 {
		host += ":" + strconv.Itoa(u.Port)
	}
	return "https://" + host + u.Path
}

// Name is the default directory of a clone.
func (u URL) Name() string {
	return strings.TrimSuffix(u.Path[strings.LastIndexByte(u.Path, '/')+1:], ".git")
}

// Use is what is done with a remote.
type Use string

// Uses, by the name of Git's service.
const (
	Fetch Use = "git-upload-pack"
	Push  Use = "git-receive-pack"
)

// Way returns the way out to one repository for one use only: no other path of its host, and no other
// service of Git.
func (r *Remotes) Way(u URL, use Use) (egress.Operator, error) {
	found := false
	for _, one := range r.all {
		if !one.names(u) {
			continue
		}
		found = true
		if use == Push && !one.Push {
			continue
		}
		one.Ports = []int{u.Port}
		var paths []string
		for _, path := range bothForms(u.Path) {
			paths = append(paths, path+"/info/refs", path+"/"+string(use))
		}
		return one.way(u.Host, paths), nil
	}
	if found {
		return egress.Operator{}, fmt.Errorf("pushing to %s is %w", u, ErrNotAllowed)
	}
	return egress.Operator{}, fmt.Errorf("the remote %s is %w", u, ErrNotAllowed)
}

// names reports whether a remote's entry is for a URL.
func (r Remote) names(u URL) bool {
	below, wild := strings.CutPrefix(r.Host, "*")
	if !slices.Contains(r.Ports, u.Port) || !wild && r.Host != u.Host || wild && !strings.HasSuffix(u.Host, below) {
		return false
	}
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(glob string) bool {
		return slices.ContainsFunc(bothForms(u.Path), func(path string) bool { return doublestar.MatchUnvalidated(glob, path) })
	})
}

// bothForms returns the two names that a repository has on most servers.
func bothForms(path string) []string {
	bare := strings.TrimSuffix(path, ".git")
	return []string{bare, bare + ".git"}
}
