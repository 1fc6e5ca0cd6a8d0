package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/fairlead/fairlead/services/internal/kit/publicnet"
)

// errNotPublic refuses an address. It does not name the address, which would
// reveal the internal network.
var errNotPublic = errors.New("the host has an address that is not public")

// control checks the address just before a connection is made, after the host's
// name is resolved: an earlier resolution does not count.
func control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	if !publicnet.Public(to.Addr()) {
		return errNotPublic
	}
	return nil
}

// CheckURL returns the fault of a webhook's address, as far as it can be found
// without resolving its name.
func (c Config) CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme == "http" && !c.AllowHTTP:
		return errors.New("it begins with http://; use https://")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it does not begin with https://")
	case u.Hostname() == "":
		return errors.New("it names no host")
	case u.User != nil:
		return errors.New("it holds a user name or a password; messages are signed instead")
	case u.Fragment != "":
		return errors.New("it has a fragment (#…), which is never sent")
	case c.AllowPrivate:
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return errNotPublic
	}
	if a, err := netip.ParseAddr(host); err == nil && !publicnet.Public(a) {
		return errNotPublic
	}
	return nil
}
