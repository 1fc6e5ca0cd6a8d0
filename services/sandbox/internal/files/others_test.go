package files

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// shown are mounts of others, as a test has them come and go.
type shown struct {
	names    []string
	busy     error // why they cannot be detached
	held     bool
	asked    int
	detached func()
}

func (s *shown) Shown() ([]string, func()) {
	s.held = true
	s.asked++
	return s.names, func() { s.held = false }
}

func (s *shown) Detach() error {
	if s.busy == nil {
		s.detached()
	}
	return s.busy
}

// others are the ways to have a directory go over which a mount of others lies.
var others = map[string]func(*Tree, func(Step) error) error{
	"removed":           func(t *Tree, before func(Step) error) error { return t.Remove("mnt/private", false, before) },
	"removed, by links": func(t *Tree, before func(Step) error) error { return t.Remove("link/private", false, before) },
	"removed with what is above": func(t *Tree, before func(Step) error) error {
		return t.Remove("mnt", true, before)
	},
	"moved": func(t *Tree, before func(Step) error) error {
		_, err := t.Move("mnt/private", "away", false, before)
		return err
	},
	"replaced": func(t *Tree, before func(Step) error) error {
		_, err := t.Move("other", "mnt/private", true, before)
		return err
	},
}

// The mount comes after it was written down what is about to be done: commands start meanwhile.
func TestAMountOfOthersIsDetachedBeforeItsDirectoryGoes(t *testing.T) {
	for name, away := range others {
		t.Run(name, func(t *testing.T) {
			tree, dir := newTree(t, map[string]string{"mnt/private/": "", "other/": "", "link": "->mnt"})
			was, err := os.Stat(filepath.Join(dir, "mnt/private"))
			must(t, err)
			detached := false
			o := &shown{detached: func() {
				detached = true
				if is, err := os.Stat(filepath.Join(dir, "mnt/private")); err != nil || !os.SameFile(was, is) {
					t.Errorf("it is gone already: %v", err)
				}
			}}
			tree.Others = o
			must(t, away(tree, func(Step) error {
				o.names = []string{"mnt", "mnt/private"}
				return nil
			}))
			if is, err := os.Stat(filepath.Join(dir, "mnt/private")); err == nil && os.SameFile(was, is) {
				t.Error("it is still there")
			}
			if !detached || o.held {
				t.Errorf("detached: %v, held: %v", detached, o.held)
			}
		})
	}
}

func TestADirectoryStaysWhoseMountIsInUse(t *testing.T) {
	for name, away := range others {
		t.Run(name, func(t *testing.T) {
			tree, dir := newTree(t, map[string]string{"mnt/private/": "", "other/": "", "link": "->mnt"})
			was, err := os.Stat(filepath.Join(dir, "mnt/private"))
			must(t, err)
			o := &shown{names: []string{"mnt", "mnt/private"}, busy: errors.New("in use")}
			tree.Others = o
			if err := away(tree, func(Step) error { return nil }); !errors.Is(err, o.busy) {
				t.Errorf("%v", err)
			}
			if is, err := os.Stat(filepath.Join(dir, "mnt/private")); err != nil || !os.SameFile(was, is) {
				t.Errorf("it is gone: %v", err)
			}
			if o.held {
				t.Error("it is held")
			}
		})
	}
}

// What is no directory has no mount over it, and does not wait for commands that start.
func TestAFileGoesWithoutAskingForMounts(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"file": "", "link": "->.", "old": "", "mnt/": ""})
	o := &shown{names: []string{"mnt"}, busy: errors.New("in use")}
	tree.Others = o
	must(t, tree.Remove("file", true, nil))
	must(t, tree.Remove("link", true, nil))
	_, err := tree.Move("old", "new", false, func(Step) error { return nil })
	must(t, err)
	if o.asked > 0 {
		t.Errorf("it asked %d times", o.asked)
	}
	// Other directories only ask.
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o700))
	must(t, tree.Remove("a", true, nil))
	if left, err := os.ReadDir(dir); err != nil || !slices.EqualFunc(left, []string{"mnt", "new"}, func(d os.DirEntry, name string) bool { return d.Name() == name }) {
		t.Errorf("%v, %v", left, err)
	}
}
