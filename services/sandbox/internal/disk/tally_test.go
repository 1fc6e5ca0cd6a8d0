package disk

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// fill writes files of a block each.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wide are limits that a test does not reach.
var wide = Room{Bytes: 1 << 40, Inodes: 1 << 30}

// What a counter hands over it goes on reading, while changes are added.
func TestATallySharesNothingWithWhoCounted(t *testing.T) {
	var known Tally
	dir := t.TempDir()
	fill(t, dir, "a")
	u, err := known.Count(wide, dir)
	if err != nil {
		t.Fatal(err)
	}
	known.Add(10, 1)
	if u.Bytes != 4096 || u.Inodes != 1 {
		t.Errorf("the counter's own figures became %+v", u)
	}
	fill(t, dir, "b") // a change that was not reported to it
	if got, err := known.Get(wide, dir); err != nil || got.Bytes != 4106 || got.Inodes != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	known.Forget()
	if got, err := known.Get(wide, dir); err != nil || got.Bytes != 8192 || got.Inodes != 2 {
		t.Errorf("after forgetting: %+v, %v", got, err)
	}
}

// Who counts does not hold up changes of the service's own, and may see them or not.
func TestAChangeDuringACountIsNotMissed(t *testing.T) {
	for name, change := range map[string]func(*Tally){
		"added":     func(known *Tally) { known.Add(4096, 1) },
		"forgotten": func(known *Tally) { known.Forget() },
	} {
		t.Run(name, func(t *testing.T) {
			var known Tally
			dir := t.TempDir()
			fill(t, dir, "a")
			c, err := countFolders(wide, []string{dir})
			if err != nil {
				t.Fatal(err)
			}
			told := known.reports
			fill(t, dir, "b")
			change(&known)
			known.keep(c, told)
			if u, err := known.Near(wide, dir); err != nil || u.Inodes != 2 {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

func TestACountStandsForAWhile(t *testing.T) {
	const others = 8 // as a share: what else is on this disk may be deleted meanwhile
	for name, c := range map[string]struct {
		change func(*counted)
		stands bool
	}{
		"nothing of note was written":               {func(*counted) {}, true},
		"it took no time":                           {func(c *counted) { c.took = 0 }, true},
		"it is long ago":                            {func(c *counted) { c.at = c.at.Add(-2 * LookPause) }, false},
		"it is long ago, but took long":             {func(c *counted) { c.at, c.took = c.at.Add(-2*LookPause), LookPause }, true},
		"it took long, but is too long ago":         {func(c *counted) { c.at, c.took = c.at.Add(-61*LookPause), LookPause }, false},
		"half of what was left may be written":      {func(c *counted) { c.room.bytes += wide.Bytes/2 + wide.Bytes/others }, false},
		"half of the files left may have been made": {func(c *counted) { c.room.inodes += wide.Inodes/2 + wide.Inodes/others }, false},
		"others have deleted":                       {func(c *counted) { c.room = freeSpace{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var known Tally
			dir := t.TempDir()
			fill(t, dir, "a")
			if _, err := known.Count(wide, dir); err != nil {
				t.Fatal(err)
			}
			known.known.took = time.Millisecond
			c.change(known.known)
			fill(t, dir, "b")
			u, err := known.Look(true, wide, dir)
			if err != nil || (u.Inodes == 1) != c.stands {
				t.Errorf("%+v, %v", u, err)
			}
			if u, err := known.Get(wide, dir); err != nil || u.Inodes != 2 {
				t.Errorf("who wants it for certain gets %+v, %v", u, err)
			}
		})
	}
}

// While a command runs everything is counted, and so is all that a change may lack room for.
func TestNobodyIsRefusedForAnOldCount(t *testing.T) {
	var known Tally
	dir := t.TempDir()
	fill(t, dir, "a", "b")
	if _, err := known.Count(wide, dir); err != nil {
		t.Fatal(err)
	}
	known.known.took = time.Hour
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if u, err := known.Look(true, wide, dir); err != nil || u.Inodes != 2 {
		t.Fatalf("it does not stand: %+v, %v", u, err)
	}
	narrow := Room{Bytes: 1 << 30, Inodes: 2}
	if why, err := known.Reserve(narrow, 1, 1, dir); why != "" || err != nil {
		t.Errorf("refused: %q, %v", why, err)
	}
	fill(t, dir, "c", "d")
	if u, err := known.Look(false, wide, dir); err != nil || u.Inodes != 3 {
		t.Errorf("while a command runs: %+v, %v", u, err)
	}
	if why, err := known.Reserve(narrow, 1, 1, dir); why == "" || err != nil {
		t.Errorf("let through: %v", err)
	}
}

// Room of a command may be lower than the workspace's: what was counted up to them is not all.
func TestACountUpToALowerLimitIsNotTakenForAll(t *testing.T) {
	var known Tally
	dir := t.TempDir()
	fill(t, dir, "a", "b", "c", "d")
	low := Room{Bytes: 1 << 40, Inodes: 1}
	if u, err := known.Count(low, dir); err != nil || u.Over(low) == "" {
		t.Fatalf("%+v, %v", u, err)
	}
	known.known.took = time.Hour // it stands
	for what, look := range map[string]func(Room, ...string) (Size, error){"nearly": known.Near, "for certain": known.Get} {
		if u, err := look(low, dir); err != nil || u.Over(low) == "" {
			t.Errorf("below the lower limits, %s: %+v, %v", what, u, err)
		}
	}
	if u, err := known.Near(wide, dir); err != nil || u.Inodes != 4 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := known.Count(low, dir); err != nil {
		t.Fatal(err)
	}
	if why, err := known.Reserve(Room{Bytes: 1 << 40, Inodes: 4}, 1, 1, dir); why == "" || err != nil {
		t.Errorf("a change is let through that would be too much: %v", err)
	}
}

func TestWhoCountedReadsItsFigureWhileOthersChangeIt(t *testing.T) {
	var known Tally
	dir := t.TempDir()
	fill(t, dir, "a")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 400 {
				if _, err := known.Count(wide, dir); err != nil {
					t.Error(err)
				}
				known.Add(1, 1)
			}
		})
	}
	wg.Wait()
}
