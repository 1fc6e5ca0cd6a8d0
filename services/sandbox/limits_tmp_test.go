package sandbox_test

import (
	"os"
	"strings"
	"testing"
)

func TestFilesInMemoryAreBoundedInNumber(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may make such a file system")
	}
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		answers := c.bystander(t)
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			r := c.bash(t, "cd "+dir+" && i=0; while : > $i; do i=$((i+1)); [ $i = 20000 ] && break; done; echo $i; rm -f *; touch again && echo room; [ $i -lt 20000 ] || exit 0; exit 1")
			if !strings.HasSuffix(r.out, "room\n") || r.out == "20000\nroom\n" || r.hits() != "tmp" {
				t.Errorf("%s: %q %.200q %v", dir, r.out, r.err, r.ExecExited)
			}
			answers()
		}
		if r := c.bash(t, "stat -c '%a %u' /tmp /dev/shm; grep -E ' (/tmp|/dev/shm) ' /proc/self/mountinfo"); !strings.HasPrefix(r.out, "1777 1000\n1777 1000\n") || strings.Count(r.out, "nosuid,nodev") != 2 {
			t.Errorf("%q", r.out)
		}
	})
}
