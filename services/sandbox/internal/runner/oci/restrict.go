package oci

import (
	"errors"
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// restrictions are the mount options that remove rights.
var restrictions = map[string]uint64{
	"ro": unix.MOUNT_ATTR_RDONLY, "nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC,
}

// restrict ensures that the mounts of a created container allow no more than requested, because runtimes do
// not: crun 1.8 omits nosuid and nodev for a writable bind, and others skip file systems mounted below.
// process is a descriptor of the container's first process.
func restrict(mounts []specs.Mount, process int) error {
	return bind.In(process, func() error {
		for _, m := range mounts {
			flags := uint(unix.AT_SYMLINK_NOFOLLOW)
			if slices.Contains(m.Options, "rbind") {
				flags |= unix.AT_RECURSIVE
			}
			var attr unix.MountAttr
			for _, o := range m.Options {
				attr.Attr_set |= restrictions[o]
			}
			if err := unix.MountSetattr(unix.AT_FDCWD, m.Destination, flags, &attr); err != nil {
				return fmt.Errorf("restrict the mount %s: %w", m.Destination, err)
			}
		}
		return restrictDevices()
	})
}

// restrictDevices makes the machine's own devices read-only. In a user namespace a runtime cannot make
// devices and shows these instead. It runs in the container's mount namespace.
func restrictDevices() error {
	for _, d := range rootfs.Devices {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
		err := unix.MountSetattr(unix.AT_FDCWD, d, unix.AT_SYMLINK_NOFOLLOW, &attr)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // EINVAL: it is no mount
			return fmt.Errorf("restrict the mount %s: %w", d, err)
		}
	}
	return nil
}
