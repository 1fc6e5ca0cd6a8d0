package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatCanBeToldOfAStep takes a step, or does not, and has others come.
func TestWhatCanBeToldOfAStep(t *testing.T) {
	t.Parallel()
	put := func(s *Space, before func(RenameStep) error) error {
		d, err := s.Draft()
		if err != nil {
			return err
		}
		defer d.Discard()
		if _, err := d.Write([]byte("text")); err != nil {
			return err
		}
		_, _, err = s.Put(d, "to", Target{Before: func(p RenameStep, _ Info, _ int64) error { return before(p) }})
		return err
	}
	move := func(s *Space, before func(RenameStep) error) error {
		_, err := s.Move("from", "to", false, before)
		return err
	}
	remove := func(s *Space, before func(RenameStep) error) error { return s.Remove("from", true, before) }
	nothing := func(string) error { return nil }
	again := func(name string) func(string) error {
		return func(dir string) error {
			at := filepath.Join(dir, name)
			// While the one before is open, its number is not given away: see Mark for when it is.
			if held, err := os.Open(at); err == nil {
				defer func() { _ = held.Close() }()
			}
			return errors.Join(os.RemoveAll(at), os.WriteFile(at, []byte("other"), 0o644))
		}
	}
	gone := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	const yes, no, unknown = "yes", "no", "unknown"
	for _, tc := range []struct {
		name            string
		step            func(*Space, func(RenameStep) error) error
		others          func(dir string) error
		before, after   string // if it was not taken, and if it was
		before2, after2 string // … and the machine crashed since
	}{
		{"put", put, nothing, no, yes, no, yes},
		{"put, and replaced", put, again("to"), no, yes, no, unknown},
		{"put, and removed", put, gone("to"), no, yes, no, unknown},
		{"put, and torn", put, func(dir string) error {
			if err := os.Truncate(filepath.Join(dir, "to"), 0); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}, no, yes, no, unknown},
		{"move", move, nothing, no, yes, no, yes},
		{"move, and another put there", move, again("from"), unknown, yes, unknown, yes},
		{"move, and removed", move, gone("to"), no, unknown, no, unknown},
		{"remove", remove, nothing, no, yes, no, yes},
		{"remove, and another put there", remove, again("from"), yes, yes, yes, yes},
	} {
		for _, taken := range []bool{false, true} {
			want := []string{tc.before, tc.before2}
			if taken {
				want = []string{tc.after, tc.after2}
			}
			tree, dir := newTree(t, map[string]string{"from": "x"})
			s, err := tree.With(nil)
			must(t, err)
			var step RenameStep
			stop := errors.New("a crash")
			kept := filepath.Join(t.TempDir(), "kept")
			err = tc.step(s, func(p RenameStep) error {
				if step = p; taken {
					return nil
				}
				if p.Staged { // the draft stays where it is
					return errors.Join(stop, os.Link(filepath.Join(s.staging, p.From), kept))
				}
				return stop
			})
			if taken != (err == nil) || !taken && !errors.Is(err, stop) {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if step.Staged && !taken {
				if err := os.Link(kept, filepath.Join(s.staging, step.From)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tc.others(dir); err != nil {
				t.Fatal(err)
			}
			if _, known := s.Taken(step.below("gone"), true); known {
				t.Errorf("%s: of a mount that is not there any more something is known", tc.name)
			}
			for i, sameBoot := range []bool{true, false} {
				got := unknown
				if was, known := s.Taken(step, sameBoot); known {
					got = map[bool]string{true: yes, false: no}[was]
				}
				if got != want[i] {
					t.Errorf("%s, taken %v, the same boot %v: %s, want %s", tc.name, taken, sameBoot, got, want[i])
				}
			}
		}
	}
}

func TestAMarkIsOfOneFileAlone(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"f": "x", "link": "->f"})
	first, err := tree.Mark("f", false)
	if err != nil || first.Inode == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	link, err := tree.Mark("link", false)
	if behind, bad := tree.Mark("link", true); errors.Join(err, bad) != nil || link == first || behind != first {
		t.Errorf("%+v, %+v, %v, %v", link, behind, err, bad)
	}
	if first.Born == 0 {
		t.Skip("the file system does not know when a file was made")
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	for next := first; next == first; { // two of one tick of the kernel's clock may look the same
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if next, err = tree.Mark("f", false); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
	}
}
