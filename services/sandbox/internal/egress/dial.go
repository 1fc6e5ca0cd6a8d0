package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	resolveTimeout = 10 * time.Second
	dialTimeout    = 10 * time.Second // of one address
	maxAddresses   = 8                // tried of a name
)

// resolve looks up the absolute name first, and only then below the machine's own domains, which must not
// shadow a public name. The machine's hosts file, which is the operator's, comes before both.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	return found, err
}

// dial connects to a target: it resolves the name, drops the forbidden addresses, and dials the others. It
// resolves nothing after that check.
func (p *Proxy) dial(ctx context.Context, policy *Policy, t target) (*net.TCPConn, error) {
	addrs := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		found, err := p.lookup(ctx, t.name)
		if err != nil {
			return nil, err
		}
		addrs = found
	}
	var open []netip.Addr
	for _, a := range addrs {
		a = a.Unmap().WithZone("")
		if !isSpecial(a) && !p.own.has(a) || policy.reaches(a, t) {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		return nil, &RefusalError{Outcome: RefusedAddress, Message: fmt.Sprintf(
			"%s is at a private, local or otherwise special address: only a rule for the address or its range, within the operator's ceiling, opens it", t.host())}
	}
	return connect(ctx, open[:min(len(open), maxAddresses)], t)
}

func (p *Proxy) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := p.o.Resolve(ctx, name)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound, err == nil && len(found) == 0:
		return nil, &RefusalError{Outcome: Failed, Message: "there is no host " + name}
	case err != nil:
		return nil, &RefusalError{Outcome: Failed, Message: "the address of " + name + " could not be found: try again later"}
	}
	return found, nil
}

func connect(ctx context.Context, addrs []netip.Addr, t target) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	var last error
	for _, a := range addrs {
		c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, t.port).String())
		if err == nil {
			return c.(*net.TCPConn), nil //nolint:forcetypeassert // the network is tcp
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	why := "it does not answer"
	var op *net.OpError
	if errors.As(last, &op) && !op.Timeout() {
		why = op.Err.Error()
	}
	return nil, &RefusalError{Outcome: Failed, Message: fmt.Sprintf("cannot connect to %s: %s", t.authority(), why)}
}

// ownAddresses are the node's addresses. Servers there are often meant for the node alone, and may listen
// at a public address.
type ownAddresses struct {
	mu   sync.Mutex
	read time.Time
	all  map[netip.Addr]bool
}

// ownFor is how long the list is valid.
const ownFor = 10 * time.Second

func (o *ownAddresses) has(a netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.read) > ownFor {
		o.all, o.read = interfaceAddresses(), time.Now()
	}
	return o.all == nil || o.all[unmap(a)]
}

// interfaceAddresses returns nil if they cannot be read: then any address may be the node's.
func interfaceAddresses() map[netip.Addr]bool {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	all := map[netip.Addr]bool{}
	for _, n := range nets {
		if p, err := netip.ParsePrefix(n.String()); err == nil {
			all[unmap(p.Addr())] = true
		}
	}
	return all
}
