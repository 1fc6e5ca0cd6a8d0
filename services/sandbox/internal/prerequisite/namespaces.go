package prerequisite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tryTimeout limits one try of bubblewrap.
const tryTimeout = 10 * time.Second

// adviseNamespaces tries the steps of bubblewrap, adding one at a time. If it cannot try, it relies on the
// machine's settings.
func (s Sandboxes) adviseNamespaces(ctx context.Context) []string {
	_, tried := s.try(ctx, "--version")
	if !tried {
		return []string{adviseUserNamespaces("", findCauses("/proc")), adviseProc("")}
	}
	if said, ok := s.try(ctx, "--unshare-user", "--ro-bind", "/", "/"); !ok {
		causes := findCauses("/proc")
		if len(causes) == 0 {
			causes = []string{"The kernel or its security module refuses: choose a machine that does not, or another driver (`sandbox.driver`)"}
		}
		return []string{adviseUserNamespaces(said, causes), adviseProc("")}
	}
	if said, ok := s.try(ctx, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc"); !ok {
		return []string{adviseProc(said)}
	}
	return nil
}

// adviseUserNamespaces returns no advice without a cause. said is bubblewrap's output, if it was tried.
func adviseUserNamespaces(said string, causes []string) string {
	if len(causes) == 0 {
		return ""
	}
	if said != "" {
		said = " (" + said + ")"
	}
	return fmt.Sprintf("Sandboxes need user namespaces, and cannot have any%s. %s.", said, strings.Join(causes, ". "))
}

// try runs bubblewrap as the commands' user. On failure it returns the reason.
func (s Sandboxes) try(ctx context.Context, arguments ...string) (said string, ok bool) {
	if s.Bubblewrap == "" {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Bubblewrap, append(arguments, "true")...) //nolint:gosec // the operator's
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	if s.OtherUsers {
		id := uint32(s.FirstUser)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", true
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return text, false
	}
	return err.Error(), false
}

// adviseProc is about a container that covers parts of /proc, where the kernel mounts no new one. said is
// bubblewrap's output. If it is empty and nothing is covered, there is no advice.
func adviseProc(said string) string {
	raw, _ := os.ReadFile("/proc/self/mountinfo")
	covered := covers(string(raw), "/proc")
	switch {
	case len(covered) == 0 && said == "":
		return ""
	case len(covered) == 0:
		return fmt.Sprintf("A sandbox cannot have a /proc of its own: %s. Start the container with `--privileged`, or choose another driver (`sandbox.driver`).", said)
	case said == "":
		said = "the kernel refuses"
	}
	return fmt.Sprintf("A sandbox cannot have a /proc of its own: %s, because parts of this one are covered (%s). "+
		"Start the container with `--security-opt systempaths=unconfined` (Podman: `--security-opt unmask=ALL`; Kubernetes: `procMount: Unmasked`) or `--privileged`.",
		said, strings.Join(covered, ", "))
}

// settings are the kernel's settings that deny user namespaces to all users, or to all but root.
var settings = []struct{ name, bad, good string }{
	{"user.max_user_namespaces", "0", "15000"},
	{"kernel.unprivileged_userns_clone", "0", "1"},
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
}

// findCauses returns why user namespaces are missing, and what to do, as sentences without their final
// dots.
func findCauses(proc string) []string {
	var causes []string
	for _, x := range settings {
		raw, err := os.ReadFile(proc + "/sys/" + strings.ReplaceAll(x.name, ".", "/"))
		if err == nil && strings.TrimSpace(string(raw)) == x.bad {
			causes = append(causes, fmt.Sprintf("%s is %s: run `sysctl -w %s=%s` on the host", x.name, x.bad, x.name, x.good))
		}
	}
	if raw, err := os.ReadFile(proc + "/thread-self/status"); err == nil && strings.Contains(string(raw), "\nSeccomp:\t2\n") {
		causes = append(causes, "A system call filter is on this process, as containers have it: start the container with `--security-opt seccomp=unconfined` "+
			"(in Kubernetes `seccompProfile: {type: Unconfined}`) or `--privileged`")
	}
	if raw, err := os.ReadFile(proc + "/thread-self/attr/current"); err == nil && strings.Contains(string(raw), "(enforce)") {
		causes = append(causes, fmt.Sprintf("The AppArmor profile %s is on this process: start the container with `--security-opt apparmor=unconfined` or `--privileged`",
			strings.Fields(string(raw))[0]))
	}
	if _, err := os.Stat(proc + "/self/ns/user"); err != nil {
		causes = append(causes, "The kernel was built without them: choose one with CONFIG_USER_NS")
	}
	return causes
}
