//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/tree"
)

// Trees is what the node keeps of the read-only folders of sessions, such as skills.
type Trees struct {
	Bytes     int64         `key:"bytes" help:"size of all read-only folders that the node keeps for sessions, such as skills, in bytes; those unused for longest make room, and further ones are refused while all are in use"`
	Count     int           `key:"count" help:"the most such folders"`
	Keep      time.Duration `key:"keep-for" help:"how long such a folder stays when no session uses it; at least an hour"`
	TreeBytes int64         `key:"tree-bytes" help:"size of the files of one such folder, in bytes"`
	TreeFiles int64         `key:"tree-files" help:"files and folders in one such folder"`
}

// Validate reports all faults.
func (t Trees) Validate() error {
	var faults []error
	for key, n := range map[string]int64{"bytes": t.Bytes, "count": int64(t.Count), "tree-bytes": t.TreeBytes, "tree-files": t.TreeFiles} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d is less than 1", key, n))
		}
	}
	if t.Keep < time.Hour {
		faults = append(faults, fmt.Errorf("keep-for: %v is less than an hour", t.Keep))
	}
	return errors.Join(faults...)
}

// trees opens the trees of a data directory; nil for a driver that cannot show a folder to some commands only.
func (c Config) trees(data string, left *erase.Later) (*tree.Store, error) {
	if c.Driver == DriverNone {
		return nil, nil //nolint:nilnil // there are none
	}
	t := c.Trees
	return tree.Open(tree.Options{
		Dir: filepath.Join(data, ".trees"), Covers: filepath.Join(data, ".points"), Leftovers: left, Now: time.Now,
		Limits: tree.Limits{Bytes: t.Bytes, Count: t.Count, Keep: t.Keep, TreeBytes: t.TreeBytes, TreeFiles: t.TreeFiles},
	})
}
