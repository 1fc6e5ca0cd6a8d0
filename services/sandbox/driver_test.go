package sandbox_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestDriversThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*sandbox.Config)
		want   string
	}{
		"one that there is not":          {func(c *sandbox.Config) { c.Driver = "docker" }, `driver: "docker" is none of`},
		"none without a further word":    {func(c *sandbox.Config) { c.Driver, c.Level = "none", "auto" }, "allow-no-isolation"},
		"none with a level":              {func(c *sandbox.Config) { c.Driver, c.Level, c.NoIsolation = "none", "full", true }, `cannot apply the level "full"`},
		"the word without what it is of": {func(c *sandbox.Config) { c.NoIsolation = true }, "leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configuration(t, sandbox.LevelBasic)
			tc.change(&c)
			s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWithoutIsolationItSaysSo(t *testing.T) {
	c := open(t, sandbox.LevelAuto, func(c *sandbox.Config) { c.Driver, c.NoIsolation = sandbox.DriverNone, true })
	got, err := c.workspaces.GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDriver() != "none" || got.GetLevel() != "none" || !slices.Contains(got.GetIncludes(), "no-isolation") || slices.Contains(got.GetIncludes(), "seccomp") {
		t.Errorf("it says %v", got)
	}
	if _, err := c.write(t, "file", "content", nil); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "cat file; id -u"); r.out != "content"+strconv.Itoa(os.Getuid())+"\n" {
		t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
	}
}
