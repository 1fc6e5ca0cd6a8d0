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

// Call identifies the caller of an operation.
type Call struct {
	Key
	Epoch int64
	ID    string
	// User is the acting user. It decides which mounts and variables there are.
	User string
	// Operation means that the work outlives the holders of the session, so that a lower epoch is not
	// refused.
	Operation bool
	// Holder is the session that makes the call, if it works in the workspace of another one; empty: Key's
	// own. The epoch is the holder's.
	Holder string
	// Node is the name of the intended node; empty means any.
	Node string
	// Generation is the intended generation of the place; 0 means any.
	Generation int64
}

var (
	sessionID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	callID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// check refuses keys that could name another folder. Validation of the request also does; check is a second
// defense of the directory.
func (k Key) check() error {
	if k.Tenant == "" || len(k.Tenant) > 64 {
		return errors.New("the tenant must have 1 to 64 bytes")
	}
	if !sessionID.MatchString(k.Session) {
		return fmt.Errorf("session id %q is not valid", k.Session)
	}
	return nil
}

// Path returns a unique name of the session among all tenants: two parts of letters, digits and `-_%`,
// neither of which begins with a dot.
func (k Key) Path() string { return k.folder() + "/" + k.Session }

// tenantOf returns the tenant of a folder.
func tenantOf(folder string) string {
	tenant, err := url.PathUnescape(folder)
	if err != nil {
		return folder // not a name that this package writes
	}
	return tenant
}

// folder returns the tenant's folder: the tenant, with every byte that is not plain as %XX. Two tenants
// never share one, and none begins with a dot.
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
