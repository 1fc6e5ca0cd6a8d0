package agent

import (
	"fmt"
	"strings"
)

// CheckCheckpoints refuses a misleading list of tools.
func CheckCheckpoints(tools []string) error {
	for _, t := range tools {
		if begin, _ := strings.CutSuffix(t, "*"); t == "" || strings.ContainsAny(begin, "* ()") {
			return fmt.Errorf("checkpoints: %q is not the name of a tool, the beginning of one with * behind it, or *", t)
		}
	}
	return nil
}
