package integration

import (
	"errors"
	"os"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// TestAsAPlainUser runs the other tests of this package as a user without any
// privilege, where only the level `basic` is to be had. It is in the first of the files: those tests
// take as long as all others, beside which they run.
func TestAsAPlainUser(t *testing.T) {
	dir := plainuser.Folder(t)
	environment, arguments := []string{"PATH=" + os.Getenv("PATH"), attackerProgram + "=" + attacker(t)}, []string{"-test.timeout=15m"}
	switch {
	case *attacksTable != "":
		arguments = append(arguments, "-attacks="+dir+"/attacks", "-test.run=TestAttacks")
	case testing.Short(): // make prove runs all of them
		arguments = append(arguments, "-test.run=^(TestNeighboursAreOutOfReach|TestExec|TestFiles|TestCapabilities)")
	}
	plainuser.Tests(t, dir, environment, arguments...)
	if *attacksTable != "" {
		b, err := os.ReadFile(dir + "/attacks")
		if err := errors.Join(err, appendTo(*attacksTable, string(b))); err != nil {
			t.Error(err)
		}
	}
}
