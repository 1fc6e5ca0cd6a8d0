package builtin

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// leftOut follows a tool's findings when rules withheld some of them.
const leftOut = "(Files were left out: a rule of the permission profile keeps this tool from them.)\n"

// maxAlike bounds how many names a note lists.
const maxAlike = 20

// alike returns a note about paths that look the same and differ in their Unicode
// form, or "".
func alike(paths []string) string {
	forms := map[string][]string{}
	for _, p := range paths {
		if form := norm.NFC.String(p); !slices.Contains(forms[form], p) && isWide(p) {
			forms[form] = append(forms[form], p)
		}
	}
	var told []string
	for _, same := range forms {
		if len(same) > 1 {
			slices.Sort(same)
			for i, p := range same {
				same[i] = shownBytes(p)
			}
			told = append(told, strings.Join(same, " and "))
		}
	}
	if len(told) == 0 {
		return ""
	}
	slices.Sort(told)
	return "(Some names look the same, but differ in their Unicode form. Written so, they can be told apart and used: " +
		strings.Join(told[:min(len(told), maxAlike)], "; ") + ".)\n"
}

func isWide(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
