package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// silence is the time without a beat after which a server of a group counts
	// as stopped.
	silence = 2*longest + time.Second
	// leaveTimeout bounds the record of this server's stop.
	leaveTimeout = 2 * time.Second
)

// Group is the servers that share one store and have workspaces on their own disks. Each
// server records regularly in the store that it runs, and its address: its beat.
//
// A server is lost when it neither answers nor beats for Config.LostAfter. Sessions wait
// for a server that beats and cannot be reached: its files still exist.
type Group struct {
	Self  store.Member
	Store store.Members
	// Learn is called with the address of a server (kit/node).
	Learn func(name, address string) error
	// Ask asks the server at an address for its name.
	Ask func(ctx context.Context, address string) (name string, err error)

	met time.Time // when the members were read last
}

// meet beats, and reads the other members.
func (n *Nodes) meet(ctx context.Context) error {
	g := n.Group
	if g == nil {
		return nil
	}
	err := g.beat(ctx)
	if errors.Is(err, store.ErrReplaced) {
		return fmt.Errorf("%w, %q: give each server its own data directory, or its own sandbox.node", err, g.Self.Name)
	}
	var members []store.Member
	if err == nil {
		members, err = g.Store.Members(ctx)
	}
	if err == nil {
		err = g.learn(members)
	}
	if err != nil {
		if ctx.Err() == nil {
			n.Log.WarnContext(ctx, "the servers that share the database cannot be listed", "error", err)
		}
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(members)
	return nil
}

// beat records that this server runs. The end of ctx does not cut it off: the database could
// still carry it out after leave, and the server would be listed again.
func (g *Group) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	return g.Store.Beat(ctx, g.Self)
}

// learn passes on the members' addresses.
func (g *Group) learn(members []store.Member) error {
	var faults []error
	for _, m := range members {
		if m.Name != g.Self.Name {
			faults = append(faults, g.Learn(m.Name, m.Address))
		}
	}
	return errors.Join(faults...)
}

// count sets the members, and which of them beat. After a time in which the store
// could not be read, every member gets time to beat again. mu is held.
func (n *Nodes) count(members []store.Member) {
	g, now := n.Group, time.Now()
	blind := now.Sub(g.met) > silence
	g.met = now
	names := []string{g.Self.Name}
	for _, m := range members {
		if m.Name != g.Self.Name {
			names = append(names, m.Name)
		}
	}
	for _, name := range n.names {
		if !slices.Contains(names, name) {
			delete(n.states, name) // a member that is forgotten has no workspace
		}
	}
	n.name(names)
	for _, m := range members {
		s := n.states[m.Name]
		s.beats, s.empty = runs(m), m.Empty
		if (s.beats || blind) && !s.since.IsZero() {
			s.since = now
		}
		if s.beats && s.lost {
			s.lost = false
			n.wakeWaiters()
		}
	}
}

// runs reports whether a member has beaten lately.
func runs(m store.Member) bool { return m.Address != "" && m.Silent < silence }

// leave records that this server stops, so that its next start does not wait for it.
// The others forget a server without workspaces.
func (g *Group) leave(ctx context.Context, log *slog.Logger) {
	if g == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := g.Store.Leave(ctx, g.Self); err != nil {
		log.WarnContext(ctx, "cannot record that this server stops", "error", err)
	}
}

// CheckStart returns an error if the servers could not use each other's files: two servers under
// one name, or servers on several machines with peer listeners on loopback. It changes nothing:
// Run enlists the server, once it serves.
func (n *Nodes) CheckStart(ctx context.Context) error {
	if n == nil || n.Group == nil {
		return nil
	}
	g := n.Group
	members, err := g.Store.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if !runs(m) || m.Address == g.Self.Address { // the address is this server's now
			continue
		}
		if err := n.check(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// enlist makes this process the one that runs under its name.
func (g *Group) enlist(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return g.Store.Enlist(ctx, g.Self)
}

// check refuses to run beside a member that has the same name or that cannot be reached.
// A member that beat lately and does not answer may have died: it is asked until it has
// been silent for long, or has beaten twice.
func (n *Nodes) check(ctx context.Context, m store.Member) error {
	for beats := 0; beats < 2; {
		name, err := n.nameAt(ctx, m.Address)
		switch {
		case err == nil && name == m.Name && name == n.Group.Self.Name:
			return fmt.Errorf("a server named %q is already running at %s: give each server its own data directory, or its own sandbox.node", name, m.Address)
		case err == nil && name == m.Name:
			return checkReach(ctx, n.Group.Self, m)
		case m.Name == n.Group.Self.Name:
			return nil // it has died, and this is its next start
		case !Loopback(m.Address):
			n.Log.Log(ctx, (&state{empty: m.Empty}).level(slog.LevelWarn), "another server cannot be reached; sessions with files on it wait", "server", m.Name, "address", m.Address, "error", err)
			return nil
		}
		if err := pause(ctx, looks*shortest); err != nil {
			return err
		}
		last := m.Silent
		if m, err = n.Group.member(ctx, m.Name); err != nil || !runs(m) {
			return err
		}
		if m.Silent < last {
			beats++
		}
	}
	return fmt.Errorf("the server %q uses the same database, and its peer listener %s cannot be reached from here, so each of the two would miss the files of the other's sessions: "+
		"set peer on both servers to an address that the other reaches (with allow-non-loopback, in a private network)", m.Name, m.Address)
}

// nameAt asks the server at an address for its name.
func (n *Nodes) nameAt(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return n.Group.Ask(ctx, address)
}

// member reads one member; its name is empty if it is gone.
func (g *Group) member(ctx context.Context, name string) (store.Member, error) {
	members, err := g.Store.Members(ctx)
	for _, m := range members {
		if m.Name == name {
			return m, err
		}
	}
	return store.Member{}, err
}

// checkReach refuses to listen where a member on another machine cannot reach this server.
func checkReach(ctx context.Context, self, m store.Member) error {
	if !Loopback(self.Address) || Loopback(m.Address) || isHere(ctx, m.Address) {
		return nil
	}
	return fmt.Errorf("the server %q uses the same database and runs on another machine, at %s, from where the peer listener %s of this one cannot be reached. "+
		"Set peer to an address that it reaches (with allow-non-loopback, in a private network)", m.Name, m.Address, self.Address)
}

// Loopback reports whether an address can be reached only from this machine.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isHere reports whether an address is one of this machine's.
func isHere(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	own, failed := net.InterfaceAddrs()
	if cmp.Or(err, failed) != nil {
		return false
	}
	for _, ip := range ips {
		for _, a := range own {
			if network, ok := a.(*net.IPNet); ok && network.IP.Equal(ip.IP) {
				return true
			}
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
