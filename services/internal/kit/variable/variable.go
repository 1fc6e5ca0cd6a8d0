// Package variable knows which names and values the environment of commands may be
// given: what the service that keeps variables accepts, the one that runs commands does.
package variable

import (
	"fmt"
	"strings"
)

// reserved are what the service itself sets, or what changes how programs
// are loaded. Names that end in a star stand for all that begin so.
var reserved = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TERM", "IFS", "BASH_ENV", "ENV",
	"LD_*", "GLIBC_TUNABLES", "FAIRLEAD_*", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY",
}

// MaxBytes is how many bytes a value may have.
const MaxBytes = 64 << 10

// Check says what is wrong with a variable of the operator's or a user's.
func Check(name, value string) error {
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) || name[0] >= '0' && name[0] <= '9' {
		return fmt.Errorf("variable %q: a name is 1 to 128 letters, digits and '_', and begins with no digit", name)
	}
	for _, r := range reserved {
		upper := strings.ToUpper(name)
		if prefix, all := strings.CutSuffix(r, "*"); upper == r || all && strings.HasPrefix(upper, prefix) {
			return fmt.Errorf("variable %s: the name is reserved (%s)", name, r)
		}
	}
	if len(value) > MaxBytes || strings.ContainsRune(value, 0) {
		return fmt.Errorf("variable %s: a value has at most %d bytes, and none of them is zero", name, MaxBytes)
	}
	return nil
}
