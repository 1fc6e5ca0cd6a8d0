package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// Volume is a claim that the service's own pod mounts at Path, from ClaimPath in the claim. Sandboxes can
// be shown its folders.
type Volume struct {
	Claim     string `key:"claim" help:"PersistentVolumeClaim of the service's own pod"`
	ClaimPath string `key:"claim-path" help:"folder in the claim; empty for its root"`
	Path      string `key:"path" help:"path of that folder in the service's pod"`
}

// Holds reports whether a path of the service is on the volume, and returns its path in the claim.
func (v Volume) Holds(name string) (sub string, ok bool) {
	rel, err := filepath.Rel(v.Path, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.Join(v.ClaimPath, rel), true
}

// coverFolder is the folder beside a workspace for folders that hold only places for mounts. See mount.MakeCover.
const coverFolder = "covers"

// shown is a further mount of a sandbox.
type shown struct {
	claim    string
	sub, at  string // path in the claim, and in the sandbox
	readOnly bool
	inode    uint64
}

// mounts returns a sandbox's mounts, outer ones first.
func (m *maker) mounts(s box.Sandbox) ([]shown, error) {
	list, err := s.MountList()
	if err != nil {
		return nil, err
	}
	workspace, err := filepath.EvalSymlinks(s.Workspace)
	if err != nil {
		return nil, fmt.Errorf("find the workspace: %w", err)
	}
	all, err := m.covers(filepath.Dir(workspace), s.User, list)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if x.Cover {
			continue
		}
		one, err := m.show(s, workspace, x)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", x.Name, err)
		}
		if x.Alias != "" {
			one.at = x.Path()
			all = append(all, one)
		}
		if x.Original {
			one.at = x.Source
			all = append(all, one)
		}
	}
	return all, nil
}

// show finds a mount's source on the claims. A pod cannot map owners of files, so a folder that commands
// may write to must belong to them.
func (m *maker) show(s box.Sandbox, workspace string, x box.Mount) (shown, error) {
	if x.Writable && s.Owner != box.Self && x.Disk != s.Owner {
		return shown{}, errors.New("its files belong to another user than the commands, and a pod cannot let the commands write to them")
	}
	f, err := x.Open(workspace)
	if err != nil {
		return shown{}, err
	}
	defer func() { _ = f.Close() }()
	one, err := m.locate(f, x.In(workspace))
	one.readOnly = !x.Writable
	return one, err
}

// locate finds an open folder on the claims. It prefers the volume with the longest path.
func (m *maker) locate(f *os.File, name string) (shown, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return shown{}, err
	}
	if strings.Contains(name, ":") {
		return shown{}, fmt.Errorf("a pod cannot show %s: its name has a colon", name)
	}
	volumes := append([]Volume{{Claim: m.o.Claim, ClaimPath: m.o.ClaimPath, Path: m.data}}, m.o.Volumes...)
	slices.SortStableFunc(volumes, func(a, b Volume) int { return len(b.Path) - len(a.Path) })
	for _, v := range volumes {
		if sub, ok := v.Holds(name); ok {
			return shown{claim: v.Claim, sub: sub, inode: st.Ino}, nil
		}
	}
	return shown{}, fmt.Errorf("%s is not on a volume that sandboxes can mount: name its claim with the key `kubernetes.volumes`", name)
}

// covers returns read-only folders for aliases of several parts. They must contain the places of the
// mounts, because these cannot be made in a read-only folder.
func (m *maker) covers(beside, user string, list []box.Mount) (all []shown, err error) {
	for _, c := range list {
		if !c.Cover {
			continue
		}
		one, err := m.cover(filepath.Join(beside, coverFolder), user, c.Places(list))
		if err != nil {
			return nil, fmt.Errorf("make places for mounts: %w", err)
		}
		one.at = c.Path()
		all = append(all, one)
	}
	return all, nil
}

// cover makes a cover for a sandbox. Commands can see its name in their list of mounts, which must not show
// whether it is private to a user.
func (m *maker) cover(in, user string, places []string) (shown, error) {
	if err := os.MkdirAll(in, 0o755); err != nil {
		return shown{}, err
	}
	dir, err := mount.MakeCover(in, m.secret+user, places)
	if err != nil {
		return shown{}, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return shown{}, err
	}
	defer func() { _ = f.Close() }()
	one, err := m.locate(f, dir)
	one.readOnly = true
	return one, err
}

// addMounts adds mounts to a sandbox's pod. Each claim is one volume.
func (m *maker) addMounts(spec *corev1.PodSpec, all []shown) {
	names := map[string]string{m.o.Claim: volume}
	for _, x := range all {
		name, known := names[x.claim]
		if !known {
			name = "claim-" + strconv.Itoa(len(names))
			names[x.claim] = name
			spec.Volumes = append(spec.Volumes, claim(name, x.claim))
		}
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: x.at, SubPath: x.sub, ReadOnly: x.readOnly})
	}
}

func claim(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// word makes init check whether the pod shows the folder that the service sees, with the right mode.
func (x shown) word() string {
	mode := "rw"
	if x.readOnly {
		mode = "ro"
	}
	return fmt.Sprintf("shown:%s:%d=%s", mode, x.inode, x.at)
}
