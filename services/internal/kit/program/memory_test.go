package program

import "testing"

func TestAQuietProgramReturnsTheMemoryOfASurge(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		before, now memory
		want        bool
	}{
		"a program after its start":            {memory{}, memory{collections: 3, held: 60 * mb}, false},
		"a quiet program":                      {memory{collections: 3, held: 60 * mb}, memory{collections: 3, held: 60 * mb}, true},
		"a quiet program that has returned it": {memory{collections: 3, held: 40 * mb, kept: 40 * mb}, memory{collections: 3, held: 50 * mb}, false},
		"a busy program":                       {memory{collections: 3, held: 400 * mb, kept: 40 * mb}, memory{collections: 4, held: 500 * mb}, false},
		"a program after a surge":              {memory{collections: 9, held: 500 * mb, kept: 40 * mb}, memory{collections: 9, held: 500 * mb}, true},
	} {
		if got := c.now.returns(c.before); got != c.want || c.now.kept != c.before.kept {
			t.Errorf("%s: %v, kept %d", name, got, c.now.kept)
		}
	}
}

func TestMemoryIsRead(t *testing.T) {
	if m := readMemory(); m.held == 0 || m.kept != 0 {
		t.Errorf("got %+v", m)
	}
}
