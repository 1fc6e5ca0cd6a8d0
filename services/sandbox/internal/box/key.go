package box

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Key names a session: its id within a tenant.
type Key struct{ Tenant, Session string }

// Call is on whose behalf something is done.
type Call struct {
	Key
	Epoch int64
	ID    string
	// User is who acts. It decides which mounts and variables there are.
	User string
	// Operation says that the caller acts for work that outlives the holders of
	// its session: a lower epoch is not refused.
	Operation bool
	// Node is the name of the node that the caller means; empty means any.
	Node string
	// Generation is of the place that the caller means, for what does not name one
	// itself; 0 means any.
	Generation int64
}

var (
	sessionID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	callID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// check refuses what could name another folder. The request's validation has
// refused it before; a directory is worth a second look.
func (k Key) check() error {
	if k.Tenant == "" || len(k.Tenant) > 64 {
		return errors.New("the tenant must have 1 to 64 bytes")
	}
	if !sessionID.MatchString(k.Session) {
		return fmt.Errorf("session id %q is not valid", k.Session)
	}
	return nil
}

// Path names the session among those of all tenants: two parts, none of which
// begins with a dot, of letters, digits and `-_%`.
func (k Key) Path() string { return k.folder() + "/" + k.Session }

// tenantOf is the tenant whose folder it is.
func tenantOf(folder string) string {
	tenant, err := url.PathUnescape(folder)
	if err != nil {
		return folder // not a name that this package writes
	}
	return tenant
}

// folder is the tenant's folder: the tenant where it is plain, with every other
// byte as %XX. Two tenants never share one, and none begins with a dot.
func (k Key) folder() string {
	var b strings.Builder
	for _, c := range []byte(k.Tenant) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
