package agent

import (
	"fmt"
	"strings"
)

// CheckCheckpoints refuses a misleading list of tools.
func CheckCheckpoints(tools []string) error {
	for _, t := range tools {
		if begin, _ := strings.CutSuffix(t, "*"); t == "" || strings.ContainsAny(begin, "* ()") {
			return fmt.Errorf("checkpoints: %q is not a tool's name, a prefix followed by *, or *", t)
		}
	}
	return nil
}
