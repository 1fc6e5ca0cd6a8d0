package runnertest

import "os"

// Crun names the runtime crun. script is where the test finds deploy/crun, which has it run
// also on a machine with control groups of both versions; without that file the machine has
// one version.
func Crun(script string) string {
	if _, err := os.Stat(script); err != nil {
		return "crun"
	}
	return script
}
