package skill

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config configures the skills.
type Config struct {
	Dir      string      `key:"dir" help:"folder with the operator's skills, one folder each, which sessions of all tenants may name; read at the start; empty: none"`
	MaxBytes config.Size `key:"max-bytes" help:"size of the files of one skill together"`
	MaxFiles int         `key:"max-files" help:"files in one skill"`
	Tenant   int         `key:"tenant" help:"the most skills of one tenant, besides those of its users"`
	User     int         `key:"user" help:"the most skills of one user"`
	Versions int         `key:"versions" help:"the most versions of one skill"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{MaxBytes: 8 << 20, MaxFiles: 500, Tenant: 200, User: 20, Versions: 50}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	for key, n := range map[string]int64{
		"max-bytes": int64(c.MaxBytes), "max-files": int64(c.MaxFiles), "tenant": int64(c.Tenant), "user": int64(c.User), "versions": int64(c.Versions),
	} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("skills.%s: %d is less than 1", key, n))
		}
	}
	return errors.Join(faults...)
}

// Limits bounds one skill.
func (c Config) Limits() Limits { return Limits{Bytes: int64(c.MaxBytes), Files: c.MaxFiles} }

// Errors of a Library, besides those of the store of files.
var (
	// ErrGone says that the files of a skill were deleted.
	ErrGone = errors.New("the skill was deleted")
	// ErrNoStore says that there is no store of files.
	ErrNoStore = errors.New("skills need a store of files: set session.files.store")
)

// Global is a skill of the operator's.
type Global struct {
	Manifest
	Digest string
	Files  int
	Size   int64
}

// Library keeps the files of skills in the object store. It is safe for concurrent use.
type Library struct {
	Config
	objects objectstore.Store // nil: there is none
	global  map[string]Global
	faults  []error
}

// Open returns the skills, and keeps the files of the operator's, so that a session still has those that it
// began with when the folder has changed. objects may be nil.
func Open(ctx context.Context, c Config, objects objectstore.Store) (*Library, error) {
	l := &Library{Config: c, objects: objects, global: map[string]Global{}}
	if c.Dir == "" {
		return l, nil
	}
	if objects == nil {
		return nil, fmt.Errorf("skills.dir: %w", ErrNoStore)
	}
	found, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("skills.dir: %w", err)
	}
	for _, d := range found {
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		f, err := ReadDir(filepath.Join(c.Dir, d.Name()), c.Limits())
		if err == nil && f.Name != d.Name() {
			err = broken(manifestName, "name is %q, and the folder is %q: give both one name", f.Name, d.Name())
		}
		if err != nil { // the others can be used
			l.faults = append(l.faults, fmt.Errorf("skills.dir: %s: %w", d.Name(), err))
			continue
		}
		if err := l.load(ctx, f); err != nil {
			return nil, fmt.Errorf("skills.dir: %s: %w", d.Name(), err)
		}
	}
	return l, nil
}

// Faults returns what is wrong with folders of the operator's that are no skills.
func (l *Library) Faults() []error { return l.faults }

// load keeps the files of a skill of the operator's.
func (l *Library) load(ctx context.Context, f *Folder) error {
	archive, digest := f.Pack()
	if err := l.put(ctx, agent.Skill{Digest: digest}, "", archive); err != nil {
		return err
	}
	l.global[f.Name] = Global{Manifest: f.Manifest, Digest: digest, Files: f.Count(), Size: f.Size()}
	return nil
}

// Globals returns the operator's skills, by name.
func (l *Library) Globals() []Global {
	all := make([]Global, 0, len(l.global))
	for _, g := range l.global {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b Global) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Global returns a skill of the operator's.
func (l *Library) Global(name string) (Global, bool) {
	g, ok := l.global[name]
	return g, ok
}

// Ready returns ErrNoStore if no skill can be kept.
func (l *Library) Ready() error {
	if l.objects == nil {
		return ErrNoStore
	}
	return nil
}

// prefix is the key of the files of all versions of a skill of a tenant.
func prefix(tenant, place string) string { return tenant + "/skill-" + place + "/" }

// key is the key of a skill's files. A tenant's own are below its name, whatever a session says.
func key(tenant string, s agent.Skill) string {
	if s.Store == "" {
		return "skills/" + s.Digest
	}
	return prefix(tenant, s.Store) + s.Digest
}

// putTimeout bounds the writing of a skill.
const putTimeout = 2 * time.Minute

func (l *Library) put(ctx context.Context, s agent.Skill, tenant string, archive []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if err := l.objects.Put(ctx, key(tenant, s), bytes.NewReader(archive), int64(len(archive))); err != nil {
		return fmt.Errorf("keep the files of a skill: %w", err)
	}
	return nil
}

// Keep stores a version of a skill of a tenant at a place.
func (l *Library) Keep(ctx context.Context, tenant, place string, f *Folder) (digest string, err error) {
	if err := l.Ready(); err != nil {
		return "", err
	}
	archive, digest := f.Pack()
	return digest, l.put(ctx, agent.Skill{Store: place, Digest: digest}, tenant, archive)
}

// Open returns the tar of a skill. The caller must close it. ErrGone if it was deleted.
func (l *Library) Open(ctx context.Context, tenant string, s agent.Skill) (io.ReadCloser, error) {
	if err := l.Ready(); err != nil {
		return nil, err
	}
	r, err := l.objects.Get(ctx, key(tenant, s))
	switch {
	case errors.Is(err, objectstore.ErrNotFound), errors.Is(err, objectstore.ErrKey):
		return nil, fmt.Errorf("%w: %s", ErrGone, s.Label())
	case err != nil:
		return nil, fmt.Errorf("read the files of skill %s: %w", s.Label(), err)
	}
	return r, nil
}

// Instructions returns the body of a skill's SKILL.md. ErrGone if the skill was deleted.
func (l *Library) Instructions(ctx context.Context, tenant string, s agent.Skill) (string, error) {
	r, err := l.Open(ctx, tenant, s)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	in := tar.NewReader(r) // the file is the first one
	h, err := in.Next()
	if err != nil || h.Name != manifestName {
		return "", fmt.Errorf("read SKILL.md of %s: it is not at the beginning: %w", s.Label(), errors.Join(err))
	}
	content, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return "", fmt.Errorf("read SKILL.md of %s: %w", s.Label(), err)
	}
	m, err := parse(content)
	if err != nil {
		return "", fmt.Errorf("read SKILL.md of %s: %w", s.Label(), err)
	}
	return m.Body, nil
}

// DropJob returns the job that deletes the files of a skill of a tenant.
func DropJob(tenant, place string) store.Job {
	return store.Job{Tenant: tenant, Kind: store.JobSkill, ID: place}
}

// Drop does a DropJob.
func (l *Library) Drop(ctx context.Context, j store.Job) (*store.Job, error) {
	if err := l.Ready(); err != nil {
		return nil, err
	}
	all, err := l.objects.List(ctx, prefix(j.Tenant, j.ID))
	if err != nil {
		return nil, fmt.Errorf("list the files of a deleted skill: %w", err)
	}
	for _, o := range all {
		if err := l.objects.Delete(ctx, o.Key); err != nil {
			return nil, fmt.Errorf("delete the files of a deleted skill: %w", err)
		}
	}
	return nil, nil
}
