package box

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// Files whose size nobody may see take no more than there can be, and than files may be large.
func TestFilesThatNobodySeesCountAsWhatThereCanBe(t *testing.T) {
	const file, there, seen = 10, 100, 60 // seen is what is found of what was there
	for name, tc := range map[string]struct {
		happens func(b *books, a *account)
		sum     held.Sum
		want    int64
	}{
		"none are there":                       {nil, held.Sum{Deleted: 5, Written: 1000}, seen + 5},
		"they are what was there":              {nil, held.Sum{Unsure: 9}, there},
		"they are so many":                     {nil, held.Sum{Unsure: 2}, seen + 2*file},
		"they are what it wrote":               {nil, held.Sum{Unsure: 9, Written: 30}, there + 30},
		"they are small, whatever it wrote":    {nil, held.Sum{Unsure: 9, Written: held.TooMuch}, seen + 9*file},
		"others are known":                     {nil, held.Sum{Unsure: 9, Deleted: 7, Written: 30}, there + 30},
		"the service brought them":             {func(b *books, _ *account) { b.bring(20); b.bring(-7) }, held.Sum{Unsure: 9}, there + 20},
		"another command writes them":          {func(b *books, _ *account) { b.enter(5, Limits{}).note(20) }, held.Sum{Unsure: 9}, there + 20},
		"another command wrote them":           {func(b *books, _ *account) { b.enter(5, Limits{}).leave(Exit{Written: 20}) }, held.Sum{Unsure: 9}, there + 20},
		"another command was lost":             {func(b *books, _ *account) { b.enter(5, Limits{}).leave(Exit{Lost: true}) }, held.Sum{Unsure: 9}, seen + 9*file},
		"all that were there before had ended": {func(b *books, a *account) { a.leave(Exit{Written: 1000}); *a = *b.enter(70, Limits{FileBytes: file}) }, held.Sum{Unsure: 9}, 70},
		"there are more than there can be":     {func(b *books, a *account) { a.leave(Exit{}); *a = *b.enter(5, Limits{FileBytes: file}) }, held.Sum{Unsure: 9}, seen},
	} {
		b := &books{}
		a := b.enter(there, Limits{FileBytes: file})
		if tc.happens != nil {
			tc.happens(b, a)
		}
		if got := (Usage{Bytes: seen}).with(a.nameless(tc.sum)); got.Bytes != tc.want {
			t.Errorf("%s: %d bytes, not %d", name, got.Bytes, tc.want)
		}
	}
	a := (&books{}).enter(0, Limits{FileBytes: 1 << 62})
	if h := a.nameless(held.Sum{Unsure: 1000, Written: held.TooMuch}); h.more < 0 || h.more > held.TooMuch {
		t.Errorf("%+v", h)
	}
}

// What is in no books fills no disk.
func TestFilesThatNobodySeesAreLargeWhereTheDiskIsFull(t *testing.T) {
	a := (&books{full: func() bool { return true }}).enter(100, Limits{FileBytes: 10})
	if got := (Usage{Bytes: 60}).with(a.nameless(held.Sum{Unsure: 9})); got.Bytes != 60+9*10 {
		t.Errorf("%d bytes", got.Bytes)
	}
	if got := (Usage{Bytes: 60}).with(a.nameless(held.Sum{Deleted: 5})); got.Bytes != 65 {
		t.Errorf("%d bytes, of which all are seen", got.Bytes)
	}
}

// Who sees no large file is told where the bytes are, and nobody else is.
func TestFilesWithoutANameAreNamedWhereTheyAreTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		usage int64
		held  nameless
		limit string
		told  bool
	}{
		"there is room":                  {90, nameless{bytes: 10}, "", false},
		"those with a name are too much": {101, nameless{bytes: 10}, hitBytes, false},
		"both are":                       {90, nameless{bytes: 11}, hitBytes, true},
		"they may be":                    {90, nameless{more: 11, all: 200}, hitBytes, true},
	} {
		limit, why := tc.held.exceed(Usage{Bytes: tc.usage}, Limits{WorkspaceBytes: 100, WorkspaceInodes: 1})
		if limit != tc.limit || strings.Contains(why, "deleted and replaced files") != tc.told {
			t.Errorf("%s: %q because %q", name, limit, why)
		}
	}
}

// What was found deleted, and seen by nobody, may have had a name by the time that files with names were counted.
func TestFilesThatNobodySeesAreFoundTwice(t *testing.T) {
	over := sure(func(h nameless) (limit, why string) {
		if h.more > 0 {
			return hitStorage, ""
		}
		return "", ""
	})
	for look, want := range []string{"", hitStorage, hitStorage} {
		if limit, _ := over(nameless{more: 1}); limit != want {
			t.Errorf("look %d: %q", look, limit)
		}
	}
}

// What quick commands have written is there when the next one begins, whether it was counted or not.
func TestWhatWasThereIsWithWhatWasNotCountedYet(t *testing.T) {
	u := &tally{}
	b := &books{usage: u}
	b.enter(0, Limits{}).leave(Exit{Written: 7})
	b.enter(0, Limits{}).leave(Exit{Written: 8})
	if n := u.most(100); n != 115 {
		t.Errorf("%d bytes", n)
	}
	if _, err := u.count(Limits{WorkspaceBytes: 1 << 30, WorkspaceInodes: 100}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if n := u.most(100); n != 100 {
		t.Errorf("once it is counted: %d bytes", n)
	}
}

// What a command had written last that was lost is known once it is counted, which is before the next one begins.
func TestWhatIsThereIsCountedAfterACommandThatWasLost(t *testing.T) {
	u, dir, l := &tally{}, t.TempDir(), Limits{WorkspaceBytes: 1 << 30, WorkspaceInodes: 100}
	b := &books{usage: u}
	if _, err := u.count(l, dir); err != nil {
		t.Fatal(err)
	}
	b.enter(0, Limits{}).leave(Exit{Lost: true})
	if _, err := u.look(true, l, dir); err != nil {
		t.Fatal(err)
	}
	if n := u.most(100); n != 100 {
		t.Errorf("%d bytes", n)
	}
}
