package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// When another component made the sandbox, init checks whether it is the requested one, and exits if not.

// reachTimeout is how long a network may take to answer, and reachTries how often it is asked. The rules of
// a network may take effect a while after a sandbox starts.
const (
	reachTimeout = time.Second
	reachTries   = 10
	reachPause   = 500 * time.Millisecond
)

// firstTimeout is how long the program that keeps a sandbox open may take to start. Until then the first
// process is the container runtime's own, although the sandbox is reported as running.
const (
	firstTimeout = 10 * time.Second
	firstPause   = 10 * time.Millisecond
)

// alone returns an error unless init is the only process in its namespace besides the program that keeps it
// open. It kills all other processes.
func alone() error {
	if os.Getpid() == 1 {
		return nil
	}
	if err := awaitFirst("/proc/1"); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return unix.Kill(1, unix.SIGUSR1)
}

// awaitFirst waits until the first process, whose folder is proc, is the requested program and handles
// signals: an earlier signal would be lost.
func awaitFirst(proc string) error {
	for end := time.Now().Add(firstTimeout); ; {
		raw, err := os.ReadFile(proc + "/cmdline")
		if err != nil {
			return fmt.Errorf("look at the sandbox's first process: %w", err)
		}
		name, err := os.ReadFile(proc + "/comm")
		if err != nil {
			return fmt.Errorf("look at the sandbox's first process: %w", err)
		}
		words := bytes.Split(raw, []byte{0})
		asked := len(words) >= 2 && string(words[0]) == os.Args[0] && string(words[1]) == "pause"
		switch {
		case asked && string(name) == hearing+"\n":
			return nil
		case time.Now().Before(end):
			<-time.After(firstPause)
		case asked:
			return fmt.Errorf("the sandbox's first process did not begin its work within %v", firstTimeout)
		default:
			return errors.New("the sandbox has no process namespace of its own: its first process is not the expected one")
		}
	}
}

// verify checks the property that a word names:
//
//	rights             no capability, no new privileges, a filter, not root, a root that is read-only
//	user-namespace     users that are not the machine's
//	size:PATH=BYTES    a file system that is no larger
//	shown:MODE:INODE=PATH  the folder that the service sees, read-only where MODE is ro
//	unreachable:ADDRESS=IP:PORT  a network in which that address does not answer; ADDRESS is the 16
//	                   bytes of the IP and the two of the port in hexadecimal
func verify(word string) (known bool, err error) {
	name, argument, _ := strings.Cut(word, ":")
	switch name {
	case "rights":
		return true, verifyRights()
	case "user-namespace":
		return true, verifyUsers()
	case "size":
		return true, verifySize(argument)
	case "shown":
		return true, verifyShown(argument)
	case "unreachable":
		return true, verifyUnreachable(argument)
	}
	return false, nil
}

func verifyRights() error {
	raw, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	has := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		has[name] = strings.TrimSpace(value)
	}
	var faults []error
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(has[set], "0") != "" || has[set] == "" {
			faults = append(faults, fmt.Errorf("it has capabilities (%s %s)", set, has[set]))
		}
	}
	if has["NoNewPrivs"] != "1" {
		faults = append(faults, errors.New("programs may gain privileges"))
	}
	if has["Seccomp"] != "2" {
		faults = append(faults, errors.New("there is no system call filter"))
	}
	if strings.HasPrefix(has["Uid"], "0\t") || strings.HasPrefix(has["Gid"], "0\t") {
		faults = append(faults, errors.New("commands would be root, or of its group"))
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil || st.Flags&unix.ST_RDONLY == 0 {
		faults = append(faults, errors.Join(errors.New("the root is not read-only"), err))
	}
	return errors.Join(faults...)
}

func verifyUsers() error {
	raw, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	if fields := strings.Fields(string(raw)); len(fields) >= 3 && fields[0] == "0" && fields[1] == "0" {
		return errors.New("it has no user namespace of its own: the cluster does not support `hostUsers: false` here")
	}
	return nil
}

func verifySize(argument string) error {
	path, number, _ := strings.Cut(argument, "=")
	most, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if size := st.Blocks * uint64(st.Bsize); size > most+1<<20 || size == 0 {
		return fmt.Errorf("%s may hold %d bytes, not %d: the cluster does not bound volumes in memory", path, size, most)
	}
	return nil
}

func verifyShown(argument string) error {
	what, path, _ := strings.Cut(argument, "=")
	mode, number, _ := strings.Cut(what, ":")
	inode, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Stat(path, &st), unix.Statfs(path, &fs)); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if st.Ino != inode {
		return fmt.Errorf("%s shows another folder than the service sees: a claim, or a path in it, is not the one that the service's own pod has", path)
	}
	if closed := fs.Flags&unix.ST_RDONLY != 0; closed != (mode == "ro") {
		return fmt.Errorf("%s is not %s, as it must be", path, mode)
	}
	return nil
}

// verifyUnreachable waits until a live address does not answer.
func verifyUnreachable(argument string) error {
	code, name, _ := strings.Cut(argument, "=")
	at, err := parseAddress(code)
	if err != nil {
		return err
	}
	for range reachTries {
		answered, err := at.answers()
		if err != nil || !answered {
			return err
		}
		<-time.After(reachPause)
	}
	return fmt.Errorf("it has a network: %s answers, although commands must not reach it: a NetworkPolicy that denies all is missing, or the cluster does not enforce it", name)
}

// address is an IP and a port. It replaces net/netip, whose initialization takes memory in every sandbox.
type address struct {
	ip   [16]byte
	port int
}

// mapped is the prefix of an IPv4 address.
const mapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff"

func parseAddress(code string) (a address, err error) {
	if len(code) != 36 {
		return a, fmt.Errorf("%q is not an address", code)
	}
	for i := range a.ip {
		n, err := strconv.ParseUint(code[2*i:2*i+2], 16, 8)
		if err != nil {
			return a, err
		}
		a.ip[i] = byte(n)
	}
	port, err := strconv.ParseUint(code[32:], 16, 16)
	a.port = int(port)
	return a, err
}

// socket returns the family of an address and its form for the kernel.
func (a address) socket() (family int, to unix.Sockaddr, loopback bool) {
	if rest, ok := strings.CutPrefix(string(a.ip[:]), mapped); ok {
		return unix.AF_INET, &unix.SockaddrInet4{Port: a.port, Addr: [4]byte([]byte(rest))}, rest[0] == 127
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: a.port, Addr: a.ip}, a.ip == [16]byte{15: 1}
}

// answers reports whether the address answers, even with a refusal.
func (a address) answers() (bool, error) {
	family, to, loopback := a.socket()
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	switch err := unix.Connect(fd, to); {
	case err == nil:
		return true, nil
	case !errors.Is(err, unix.EINPROGRESS):
		return errors.Is(err, unix.ECONNREFUSED) && !loopback, nil
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for end := time.Now().Add(reachTimeout); ; {
		n, err := unix.Poll(poll, int(time.Until(end).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return false, err
		}
		break
	}
	// An immediate refusal may be the policy's own, so it does not count as an answer.
	fault, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return fault == 0, err
}
