package seccomp

import "testing"

func TestX32CallsAreAbsent(t *testing.T) {
	t.Parallel()
	if got := run(t, program(), call{arch: auditArch, number: 0x40000000}); got != absent {
		t.Errorf("answer %#x", got)
	}
}
