package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
)

// What is in a clone's way is so until it is away.
func TestWhatIsInTheWayOfACloneIsNotRemembered(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"f": "one", "large": strings.Repeat("x", 1<<20)})
	for name, hinder := range map[string]func(c *client){
		"REPOSITORY_EXISTS": func(c *client) { put("repos/app/README", "made by a command meanwhile")(t, c) },
		"WORKSPACE_FULL":    func(c *client) { put("large", strings.Repeat("x", 7<<19))(t, c) },
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, sandbox.LevelBasic, allow(f), func(cfg *sandbox.Config) { cfg.Limits.WorkspaceBytes = 4 << 20 })
			c.snapshot(t, c.call())
			done := false
			f.Meddle(func(http.ResponseWriter, *http.Request) bool {
				if !done {
					done = true
					hinder(c)
				}
				return false
			})
			err := c.agents(t, f, "clone.agent")
			f.Meddle(nil)
			wantReason(t, err, name)
			c.restore(t, c.oldest(t))
			if err := c.agents(t, f, "clone.agent"); err != nil {
				t.Errorf("with nothing in its way: %v", err)
			}
			if got := c.bash(t, "ls repos").out; got != "app\n" {
				t.Errorf("there is %q", got)
			}
		})
	}
}
