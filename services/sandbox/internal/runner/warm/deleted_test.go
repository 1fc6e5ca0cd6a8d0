package warm

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMapping(t *testing.T) {
	t.Parallel()
	device := unix.Mkdev(254, 1)
	for _, tc := range []struct {
		name, line string
		want       mapping
		ok         bool
	}{
		{"a deleted file", "7f00aa000000-7f00aa400000 rw-s 00000000 fe:01 1234   /workspace/hidden (deleted)", mapping{"7f00aa000000-7f00aa400000", 1234, 4 << 20}, true},
		{"addresses with leading zeroes", "00400000-00401000 rw-s 00000000 fe:01 7   /workspace/a b (deleted)", mapping{"400000-401000", 7, 4096}, true},
		{"a file with a name", "7f00aa000000-7f00aa400000 rw-s 00000000 fe:01 1234   /workspace/file", mapping{}, false},
		{"a file of another device", "7f00aa000000-7f00aa400000 rw-s 00000000 00:01 1234   /memfd:x (deleted)", mapping{}, false},
		{"memory", "7f00aa000000-7f00aa400000 rw-p 00000000 00:00 0", mapping{}, false},
		{"nonsense", "x y z fe:01 q (deleted)", mapping{}, false},
	} {
		if got, ok := parseMapping(tc.line, device); ok != tc.ok || got != tc.want {
			t.Errorf("%s: %+v, %v", tc.name, got, ok)
		}
	}
}
