// Package variable checks names and values of environment variables for commands. The
// service that stores variables and the service that runs commands use the same rules.
package variable

import (
	"fmt"
	"strings"
)

// reserved are the variables that the service itself sets, or that change how
// programs are loaded. Names that end in a star stand for all with this prefix.
var reserved = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TERM", "IFS", "BASH_ENV", "ENV",
	"LD_*", "GLIBC_TUNABLES", "FAIRLEAD_*", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY",
}

// MaxBytes is how many bytes a value may have.
const MaxBytes = 64 << 10

// Check returns the fault of a variable of the operator or a user.
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
