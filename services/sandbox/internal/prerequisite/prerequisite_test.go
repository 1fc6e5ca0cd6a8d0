package prerequisite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestACauseIsFoundInWhatTheMachineSays has plain files in place of the kernel's, for settings that the kernel here may not have.
func TestACauseIsFoundInWhatTheMachineSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, text, want string }{
		{"sys/user/max_user_namespaces", "0\n", "`sysctl -w user.max_user_namespaces=15000`"},
		{"sys/user/max_user_namespaces", "1000\n", ""},
		{"sys/kernel/unprivileged_userns_clone", "0\n", "`sysctl -w kernel.unprivileged_userns_clone=1`"},
		{"sys/kernel/unprivileged_userns_clone", "1\n", ""},
		{"sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"},
		{"thread-self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n", "`--security-opt seccomp=unconfined`"},
		{"thread-self/status", "Name:\tx\nSeccomp:\t0\n", ""},
		{"thread-self/attr/current", "docker-default (enforce)\n", "docker-default is on this process: start the container with `--security-opt apparmor=unconfined`"},
		{"thread-self/attr/current", "unconfined\n", ""},
	} {
		proc := t.TempDir()
		for file, text := range map[string]string{"self/ns/user": "", tt.file: tt.text} {
			at := filepath.Join(proc, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		causes := findCauses(proc)
		if tt.want == "" && len(causes) > 0 || tt.want != "" && (len(causes) != 1 || !strings.Contains(causes[0], tt.want)) {
			t.Errorf("%s %q: %q", tt.file, tt.text, causes)
		}
	}
	if causes := findCauses(t.TempDir()); len(causes) != 1 || !strings.Contains(causes[0], "CONFIG_USER_NS") {
		t.Errorf("a kernel without user namespaces: %q", causes)
	}
}

func TestIDsAreMappedAllOrNot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"         0          0 4294967295\n", true},
		{"         0       1000          1\n         1     100000      65536\n", false},
		{"0 1000 1\n1 100000 500000\n", true},
		{"", false},
	} {
		if got := mapped(tt.text, 200_000, 50_000); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestOnlyWhatCoversProcCounts(t *testing.T) {
	t.Parallel()
	const mounts = "22 1 0:21 / /proc rw - proc proc rw\n23 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs x rw\n" +
		"24 22 0:31 / /proc/acpi ro - tmpfs tmpfs ro\n25 22 0:5 /null /proc/kcore rw - devtmpfs x rw\n26 1 0:9 / /process rw - tmpfs x rw\n"
	if got := covers(mounts, "/proc"); !slices.Equal(got, []string{"/proc/acpi", "/proc/kcore"}) {
		t.Errorf("%q", got)
	}
}
