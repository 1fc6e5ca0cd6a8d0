package box

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keeper is a Quota that notes what it is asked for.
type keeper struct {
	asked         []string
	err           error
	bytes, inodes bool // it is full
}

func (k *keeper) Keep(slot int, bytes, inodes int64, folders ...string) error {
	for i, f := range folders {
		folders[i] = filepath.Base(f)
	}
	k.asked = append(k.asked, fmt.Sprint("keep ", slot, " ", bytes, " ", inodes, " ", folders))
	return k.err
}

func (k *keeper) Release(slot int) error {
	k.asked = append(k.asked, fmt.Sprint("release ", slot))
	return nil
}

func (k *keeper) Remaining(int) (bytes, inodes int64, err error) {
	if !k.bytes {
		bytes = 1 << 20
	}
	if !k.inodes {
		inodes = 100
	}
	return bytes, inodes, k.err
}

func TestTheFileSystemIsToldTheSizeOfAWorkspace(t *testing.T) {
	k := &keeper{}
	o := options(t, &fake{})
	o.Quota = k
	n := openNode(t, o)
	seed := func(*Workspace) error { return nil }
	for _, want := range []Want{{Limits: &Lower{WorkspaceBytes: 70_000}}, {Limits: &Lower{WorkspaceBytes: 70_000}}, {}, {Limits: &Lower{WorkspaceInodes: 20}}} {
		if _, err := n.Ensure(testCall("x"), want, seed); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Delete(testCall("x").Key, 0); err != nil {
		t.Fatal(err)
	}
	k.err = errors.New("no quota")
	if _, err := n.Ensure(testCall("x"), Want{}, seed); !errors.Is(err, ErrIsolation) {
		t.Errorf("where the file system refuses: %v", err)
	}
	if got := []string{
		"keep 0 70000 100 [workspace home staging]", "keep 0 1048576 20 []", "release 0",
		"keep 0 1048576 100 [workspace home staging]", "release 0",
	}; !slices.Equal(k.asked, got) {
		t.Errorf("it was asked %q", k.asked)
	}
}

func TestAFullWorkspaceIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		before, filled keeper
		want, has      string
	}{
		"a command that fills it":                       {filled: keeper{bytes: true}, want: hitBytes, has: "1048576 bytes"},
		"of files":                                      {filled: keeper{inodes: true}, want: hitInodes, has: "100 files"},
		"one that was full before":                      {before: keeper{inodes: true}, filled: keeper{inodes: true}},
		"one that made room again":                      {},
		"the file system does not say":                  {filled: keeper{bytes: true, err: errors.New("no")}},
		"a command that leaves it as full as it may be": {filled: keeper{bytes: true, inodes: true}, want: hitInodes, has: "100 files"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{}
			o := options(t, &fake{})
			o.Quota = k
			ws := &workspace{location: location{node: openNode(t, o)}, meta: &meta{}}
			e := newExec(ws.node, t.TempDir(), record{})
			e.limits = ws.limits()
			*k = tt.before
			e.quota = ws.watchQuota()
			*k = tt.filled
			e.quota.look()
			hits := e.met(Exit{}, &Outcome{Reason: Exited}, 0)
			if tt.want == "" && len(hits) > 0 || tt.want != "" && (len(hits) != 1 || hits[0].Limit != tt.want || !strings.Contains(hits[0].Message, tt.has)) {
				t.Errorf("got %q, want %q with %q", hits, tt.want, tt.has)
			}
		})
	}
}
