package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// How a rule treats TLS.
const (
	// Pass lets plain HTTP and TLS through unchanged. TLS must name the requested host.
	Pass = "pass"
	// Raw lets any bytes through to the host and port, such as SSH.
	Raw = "raw"
	// Intercept ends the client's TLS at the proxy, with a certificate of the node's own authority, and
	// opens a new TLS connection to the outside.
	Intercept = "intercept"
	// Upgrade takes plain HTTP from the client and sends it over TLS. A request for port 80 goes to port
	// 443.
	Upgrade = "upgrade"
)

// Bounds of a policy.
const (
	maxRules  = 256
	maxValues = 64   // of one field of a rule
	maxText   = 1024 // bytes of one value
	maxStars  = 16   // of one path, because matching tries them all
	maxGlobs  = 256  // for which the braces of one path stand, as above
)

// Rule allows some requests.
type Rule struct {
	// Name appears in events and refusals; if empty, the host does.
	Name string `json:"name,omitempty" key:"name" help:"name in events and refusals; empty: the host"`
	// Host is a name, `*.` and a name for all below it, `*` for every name, an
	// address or a range of addresses.
	Host string `json:"host" key:"host" help:"a name, *.name, *, an address or a range of addresses"`
	// Ports of the destination; none means 80 and 443.
	Ports []int `json:"ports,omitempty" key:"ports" help:"ports of the destination; none: 80 and 443"`
	// Methods of HTTP; none means all.
	Methods []string `json:"methods,omitempty" key:"methods" help:"methods of HTTP; none: all"`
	// Paths of HTTP as globs, `**` for any number of segments; none means all.
	Paths []string `json:"paths,omitempty" key:"paths" help:"globs of HTTP paths, ** for any number of segments; none: all"`
	// TLS is Pass, the default, Raw, Intercept or Upgrade.
	TLS string `json:"tls,omitempty" key:"tls" help:"pass (the default), raw, intercept or upgrade"`
	// Credential names a credential of the operator to add to the requests.
	Credential string `json:"credential,omitempty" key:"credential" help:"name of a credential of egress.credentials to add to the requests"`
}

// rule is a Rule that was checked.
type rule struct {
	Rule
	host  pattern
	ports []uint16
}

// sees reports whether the rule inspects requests, which TLS passed through hides.
func (r *rule) sees() bool { return len(r.Methods)+len(r.Paths) > 0 }

func (r *rule) method(m string) bool { return len(r.Methods) == 0 || slices.Contains(r.Methods, m) }

// path reports whether the rule allows a path, both as given and as read by servers that drop segments.
func (r *rule) path(p string) bool {
	named := func(p string) bool {
		return slices.ContainsFunc(r.Paths, func(glob string) bool { return doublestar.MatchUnvalidated(glob, p) })
	}
	return len(r.Paths) == 0 || named(p) && named(merged(p))
}

// merged returns a path without empty segments and without segments that hold only parameters. A star
// matches such a segment, but many servers drop it.
func merged(p string) string {
	all := strings.Split(p, "/")
	var kept []string
	for i, s := range all {
		if i == 0 || i == len(all)-1 || s != "" && s[0] != ';' {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "/")
}

// compile checks a rule and reports all its faults.
func compile(r Rule) (*rule, error) {
	c := &rule{Rule: r}
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, fmt.Errorf(field+": "+format, args...))
	}
	var err error
	if c.host, err = parsePattern(r.Host); err != nil {
		fault("host", "%w", err)
	}
	if c.Name == "" {
		c.Name = r.Host
	}
	if len(c.Name) > maxText || strings.ContainsFunc(c.Name, func(x rune) bool { return x < ' ' || x > '~' }) {
		fault("name", "it is longer than %d bytes, or has other characters than printable ASCII", maxText)
	}
	for field, n := range map[string]int{"ports": len(r.Ports), "methods": len(r.Methods), "paths": len(r.Paths)} {
		if n > maxValues {
			fault(field, "%d are more than %d", n, maxValues)
		}
	}
	for _, p := range r.Ports {
		if p < 1 || p > 65535 {
			fault("ports", "%d is not a port", p)
		}
		c.ports = append(c.ports, uint16(p))
	}
	if len(c.ports) == 0 {
		c.ports = []uint16{80, 443}
	}
	faults = append(faults, checkMethods(r.Methods), checkPaths(r.Paths), checkTLS(c))
	return c, errors.Join(faults...)
}

func checkMethods(all []string) error {
	var faults []error
	for _, m := range all {
		switch {
		case m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || len(m) > 32:
			faults = append(faults, fmt.Errorf("methods: %q is not a method in capital letters", m))
		case m == http.MethodConnect || repeats(m):
			faults = append(faults, fmt.Errorf("methods: %s cannot be allowed", m))
		}
	}
	return errors.Join(faults...)
}

// repeats reports whether servers answer a method with the request itself. Some servers ignore the case.
func repeats(method string) bool {
	return strings.EqualFold(method, http.MethodTrace) || strings.EqualFold(method, "TRACK")
}

func checkPaths(all []string) error {
	var faults []error
	for _, p := range all {
		switch {
		case !strings.HasPrefix(p, "/"):
			faults = append(faults, fmt.Errorf("paths: %q does not begin with /", p))
		case len(p) > maxText || strings.Count(p, "*") > maxStars || strings.Count(p, "{") > 4:
			faults = append(faults, fmt.Errorf("paths: a pattern is longer than %d bytes, or has more than %d stars or 4 braces", maxText, maxStars))
		case !doublestar.ValidatePattern(p):
			faults = append(faults, fmt.Errorf("paths: %q is not a pattern", p))
		case filename.Alternatives(p, maxGlobs) > maxGlobs:
			faults = append(faults, fmt.Errorf("paths: the braces of %q stand for more than %d paths; list several paths", p[:min(len(p), 100)], maxGlobs))
		}
	}
	return errors.Join(faults...)
}

func checkTLS(r *rule) error {
	switch r.TLS {
	case "":
		r.TLS = Pass
	case Pass, Intercept, Upgrade:
	case Raw:
		if r.sees() {
			return errors.New("tls: a rule that passes raw bytes cannot see methods or paths: leave them out, or choose intercept or upgrade")
		}
		if len(r.Ports) == 0 {
			return errors.New("ports: a rule that passes raw bytes must name its ports")
		}
	default:
		return fmt.Errorf("tls: %q is not one of pass, raw, intercept, upgrade", r.TLS)
	}
	if r.Credential != "" && r.TLS != Intercept && r.TLS != Upgrade {
		return errors.New("credential: it goes out by TLS that the proxy makes: set tls to intercept or upgrade")
	}
	return nil
}

// pattern is a set of hosts.
type pattern struct {
	any    bool
	name   string // one name
	suffix string // ".example.com": every name below
	prefix netip.Prefix
}

func parsePattern(s string) (pattern, error) {
	if len(s) > maxText {
		return pattern{}, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	if s == "*" {
		return pattern{any: true}, nil
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return prefixPattern(p)
	}
	below, wild := strings.CutPrefix(s, "*.")
	t, err := parseHost(below)
	switch {
	case strings.Contains(below, "*"):
		return pattern{}, fmt.Errorf("%q: a star is allowed alone, or as the first label: *.example.com", s)
	case err != nil:
		return pattern{}, err
	case t.addr.IsValid() && wild:
		return pattern{}, fmt.Errorf("%q: a range of addresses is written as 10.0.0.0/8", s)
	case t.addr.IsValid():
		return prefixPattern(netip.PrefixFrom(t.addr, t.addr.BitLen()))
	case wild:
		return pattern{suffix: "." + t.name}, nil
	}
	return pattern{name: t.name}, nil
}

func prefixPattern(p netip.Prefix) (pattern, error) {
	if p.Masked() != p {
		return pattern{}, fmt.Errorf("%s has bits beyond its length: %s is the range", p, p.Masked())
	}
	if a := p.Addr(); a.Is4In6() || unmap(a) != a {
		return pattern{}, fmt.Errorf("%s holds IPv4 addresses: write them as such", p)
	}
	return pattern{prefix: p}, nil
}

func (p pattern) matches(t target) bool {
	switch {
	case t.addr.IsValid():
		return p.prefix.IsValid() && p.prefix.Contains(unmap(t.addr))
	case p.any:
		return true
	case p.suffix != "":
		return strings.HasSuffix(t.name, p.suffix)
	}
	return p.name != "" && t.name == p.name
}

// covers reports whether p matches every host that q matches.
func (p pattern) covers(q pattern) bool {
	switch {
	case q.prefix.IsValid():
		return p.prefix.IsValid() && p.prefix.Bits() <= q.prefix.Bits() && p.prefix.Contains(q.prefix.Addr())
	case p.any:
		return true
	case q.any:
		return false
	case q.suffix != "":
		return p.suffix != "" && strings.HasSuffix(q.suffix, p.suffix)
	}
	return p.matches(target{name: q.name})
}

// twoWays are parts of a path that servers read in different ways: encoded separators, dots and per cent
// signs.
var twoWays = []string{"%2f", "%5c", "%00", "%2e", "%25", "\\"}

// checkPath refuses paths that a server may read differently from the rule.
func checkPath(escaped, decoded string) error {
	low := strings.ToLower(escaped)
	for _, s := range twoWays {
		if strings.Contains(low, s) || strings.Contains(decoded, s) {
			return fmt.Errorf("the path has %s, which servers read in different ways", s)
		}
	}
	if !utf8.ValidString(decoded) { // such as a dot in an overlong encoding
		return errors.New("the path is not UTF-8")
	}
	if plain := norm.NFKC.String(decoded); structure(plain) != structure(decoded) {
		return errors.New("the path has characters that some servers read as dots or separators")
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		if s, _, _ := strings.Cut(segment, ";"); dots(s) {
			return errors.New("the path has segments of dots")
		}
	}
	return nil
}

// structure returns the characters of a path that define its structure, without the names.
func structure(path string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("./\\;%", c) {
			return c
		}
		return -1
	}, path)
}

// dots reports whether a segment means "." or "..", also to servers that drop blanks from it and trailing
// dots. Three dots alone are a name.
func dots(segment string) bool {
	if segment == "." || segment == ".." {
		return true
	}
	rest := strings.Trim(segment, ".")
	blank := strings.TrimFunc(rest, func(r rune) bool { return r == '.' || unicode.IsSpace(r) || unicode.IsControl(r) }) == ""
	return rest != "" && blank && strings.Contains(segment, ".")
}
