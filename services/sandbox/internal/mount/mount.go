// Package mount knows which folders of the host the operator shows to the commands of which users. It also
// knows the operator's variables for their environment. It hides the rest: to a user without access, a
// folder does not exist in any answer.
package mount

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// Modes of a mount.
const (
	ReadOnly  = "ro"
	ReadWrite = "rw"
)

// Rule is a mount that the operator configures.
type Rule struct {
	// Name is what agents and sessions ask for.
	Name string `key:"name" help:"name by which agents and sessions ask for the mount"`
	// Source is the folder on the host, by an absolute path without links.
	Source string `key:"source" help:"folder on the host, an absolute path without links"`
	// Mode is ReadOnly, the default, or ReadWrite.
	Mode string `key:"mode" help:"ro (read-only, the default) or rw"`
	// Alias is its path below the workspace. If empty, it has none there.
	Alias string `key:"alias" help:"path below the workspace; empty: none there"`
	// Original also shows it at its path on the host.
	Original bool `key:"original" help:"whether commands also see the folder at its path on the host"`
	// For lists the users that get it, as `tenant/user` or `tenant/*`. If empty, all users get it.
	For []string `key:"for" help:"users that get the mount, as tenant/user or tenant/*; none: all users"`
	// OnRequest gives it only to agents and sessions that ask for it.
	OnRequest bool `key:"on-request" help:"whether only agents and sessions that ask for the mount get it"`
}

// Variable is a variable of the environment of commands. Its value is secret.
type Variable struct {
	Name string `key:"name" help:"name of the variable"`
	// Value is the value itself. If empty, File holds the value and is read at each use.
	Value config.Secret `key:"value" help:"value; empty: file holds it"`
	File  string        `key:"file" help:"file that holds the value"`
	// For lists the users whose commands get it, as in a Rule.
	For []string `key:"for" help:"users whose commands get the variable, as tenant/user or tenant/*; none: all users"`
}

// Options of a Set.
type Options struct {
	Rules     []Rule
	Variables []Variable
	// Storage is the persistent folder of each user; without an alias there is none.
	Storage Storage
	// Workflows is the folder that is shown as `workflows`. `{tenant}` in it stands for the tenant, whose
	// folder may be missing. If empty, `workflows` is the workspace's own.
	Workflows string
	// Covers is the folder for covers, which hold only places for mounts.
	Covers string
	// Common are folders of the host that every sandbox shows.
	Common []string
	// Private are folders of the service that no mount may show.
	Private []string
	// Hidden means that the driver cannot show a folder to some commands only. There are no mounts then,
	// and New refuses a configuration that has some.
	Hidden bool
	// Unmapped means that the driver cannot map the owners of files: files that commands write to must
	// belong to them on disk.
	Unmapped bool
	// Owners are the users that commands run as.
	Owners box.Owners
	// Leftovers tracks the files of users' storage that could not be deleted.
	Leftovers *erase.Later
}

// WorkflowsFolder is the folder of the workflows that commands see and cannot change.
const WorkflowsFolder = "workflows"

// Set is a checked configuration. It is a box.Mounts and safe for concurrent use.
type Set struct {
	o      Options
	rules  []rule
	firsts []string   // of aliases that have several parts, and PrivateFolder
	mu     sync.Mutex // held while folders of users are made or removed
}

// rule is a checked Rule.
type rule struct {
	box.Mount
	audience  audience
	onRequest bool
	late      *late // not nil if the source was missing at the start
}

// For implements box.Mounts.
func (s *Set) For(tenant, user string, asked []box.Ask) ([]box.Mount, error) {
	if s.o.Hidden {
		return nil, s.checkAsked(asked, nil, user)
	}
	all := make([]box.Mount, 0, len(s.rules)+2)
	all = append(all, s.workflows(tenant))
	for _, r := range s.rules {
		ask, is := find(asked, r.Name)
		if !r.audience.includes(tenant, user) || r.onRequest && !is {
			continue
		}
		m, err := s.available(r)
		if err != nil {
			if is && !ask.Optional {
				return nil, err
			}
			continue // see Skipped
		}
		m, err = s.show(m, ask)
		switch {
		case err == nil:
			all = append(all, m)
		case !ask.Optional || !errors.Is(err, box.ErrNoMount):
			return nil, err
		}
	}
	if err := s.checkAsked(asked, all, user); err != nil {
		return nil, err
	}
	storage, err := s.storage(tenant, user)
	if err != nil {
		return nil, err
	}
	if storage != nil {
		all = append(all, *storage)
	}
	if err := checkOverlap(asked, all); err != nil {
		return nil, err
	}
	covers, err := s.covers(all)
	return append(covers, all...), err
}

// Offer is a mount as shown to a user who may have it.
type Offer struct {
	Name      string
	Paths     []string // where commands find it
	Writable  bool
	OnRequest bool
}

// Offers returns the mounts that a user's commands get or may ask for.
func (s *Set) Offers(tenant, user string) []Offer {
	if s.o.Hidden {
		return nil
	}
	all := []Offer{{Name: WorkflowsFolder, Paths: []string{path.Join(box.WorkspacePath, WorkflowsFolder)}}}
	for _, r := range s.rules {
		if !r.audience.includes(tenant, user) {
			continue
		}
		o := Offer{Name: r.Name, Writable: r.Writable, OnRequest: r.onRequest}
		if r.Alias != "" {
			o.Paths = append(o.Paths, path.Join(box.WorkspacePath, r.Alias))
		}
		if r.Original {
			o.Paths = append(o.Paths, r.Source)
		}
		all = append(all, o)
	}
	if s.isStorage(StorageName, user) {
		all = append(all, Offer{Name: StorageName, Paths: []string{path.Join(box.WorkspacePath, s.o.Storage.Alias)}, Writable: true})
	}
	return all
}

// audience is the set of users that get something; nil means all users.
type audience []string

func (a audience) includes(tenant, user string) bool {
	if len(a) == 0 {
		return true
	}
	return user != "" && (slices.Contains(a, tenant+"/*") || slices.Contains(a, tenant+"/"+user))
}

// concerns reports whether the audience names a user of a tenant, and not all users.
func (a audience) concerns(tenant string) bool {
	return slices.ContainsFunc(a, func(who string) bool { return strings.HasPrefix(who, tenant+"/") })
}

// covers reports whether this audience, which is not all users, includes every user of the other.
func (a audience) covers(other audience) bool {
	return len(other) > 0 && !slices.ContainsFunc(other, func(who string) bool {
		tenant, _, _ := strings.Cut(who, "/")
		return !slices.Contains(a, who) && !slices.Contains(a, tenant+"/*")
	})
}

// check returns an error if an audience is invalid.
func (a audience) check() error {
	for _, who := range a {
		tenant, user, ok := strings.Cut(who, "/")
		if !ok || tenant == "" || user == "" || strings.Contains(tenant, "*") {
			return fmt.Errorf("for: %q is neither `tenant/user` nor `tenant/*`", who)
		}
	}
	return nil
}

// New checks everything that can be checked before the first use, so that a faulty mount is reported at the
// start.
func New(o Options) (*Set, error) {
	s := &Set{o: o}
	if o.Hidden && (len(o.Rules) > 0 || o.Storage.Alias != "" || o.Workflows != "") {
		return nil, errors.New("mounts, storage and workflows need a driver that isolates: choose `bubblewrap` or `oci`, or leave them out")
	}
	var faults []error
	taken := map[string]bool{WorkflowsFolder: true, StorageName: true}
	for _, r := range o.Rules {
		m, err := s.compile(r)
		if err == nil && taken[r.Name] {
			err = errors.New("the name is taken")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("mount %q: %w", r.Name, err))
		}
		taken[r.Name] = true
		s.rules = append(s.rules, m)
	}
	faults = append(faults, s.checkPlaces(), s.checkSecrecy(), s.checkWorkflows(), s.openStorage(), s.openCovers())
	for _, v := range o.Variables {
		faults = append(faults, v.check())
	}
	return s, errors.Join(faults...)
}
