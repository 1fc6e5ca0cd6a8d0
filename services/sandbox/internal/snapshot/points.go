package snapshot

import (
	"slices"
	"strconv"
	"strings"
)

// without leaves out entries that a restore does not touch: those below covered folders.
func (t *Tree) without(all []Entry) []Entry {
	if len(t.Points) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Entry) bool {
		first, _, below := strings.Cut(e.Path, "/")
		return below && t.Points[first]
	})
}

// renameCovered renames wanted entries that lie below a covered folder, or that would replace a folder under a
// mount.
func (t *Tree) renameCovered(want []Entry) []Entry {
	if len(t.Points) == 0 {
		return want
	}
	kept, folders, moved := make([]Entry, 0, len(want)), map[string]Entry{}, map[string][]Entry{}
	for _, e := range want {
		first, _, below := strings.Cut(e.Path, "/")
		covered, point := t.Points[first]
		if below && covered || !below && point && e.Kind != Directory {
			moved[first] = append(moved[first], e)
			continue
		}
		if !below && point {
			folders[first] = e
		}
		kept = append(kept, e)
	}
	for first, all := range moved {
		name := t.freeName(want, first)
		if folder, ok := folders[first]; ok {
			all = append(all, folder)
		}
		for _, e := range all {
			e.Path = name + strings.TrimPrefix(e.Path, first)
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b Entry) int { return compare(a.Path, b.Path) })
	return kept
}

// freeName returns a name beside a folder that no wanted entry has.
func (t *Tree) freeName(want []Entry, folder string) string {
	for n := 1; ; n++ {
		name := folder + "." + t.Aside
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !slices.ContainsFunc(want, func(e Entry) bool { return e.Path == name }) {
			return name
		}
	}
}
