package runnertest

import "os"

// Crun returns the name of the runtime crun. script is the path of deploy/crun, which also runs crun on a
// machine with control groups of both versions. Without that file the machine must have one version.
func Crun(script string) string {
	if _, err := os.Stat(script); err != nil {
		return "crun"
	}
	return script
}
