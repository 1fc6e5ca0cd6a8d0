package kubernetes_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
)

// complete is a configuration without faults.
func complete() kubernetes.Config {
	c := kubernetes.Defaults()
	c.Image, c.Claim, c.Node = "image", "claim", "node"
	return c
}

func TestAConfigurationNamesItsFaults(t *testing.T) {
	if err := complete().Validate(); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		change func(*kubernetes.Config)
		want   string
	}{
		"no image":                 {func(c *kubernetes.Config) { c.Image = "" }, "image:"},
		"no claim":                 {func(c *kubernetes.Config) { c.Claim = "" }, "claim:"},
		"no node":                  {func(c *kubernetes.Config) { c.Node = "" }, "pod, node:"},
		"an unknown API":           {func(c *kubernetes.Config) { c.API = "jobs" }, `api: "jobs"`},
		"a volume without a claim": {func(c *kubernetes.Config) { c.Volumes = []kubernetes.Volume{{Path: "/srv"}} }, "each needs a claim"},
		"a volume that leaves its claim": {func(c *kubernetes.Config) {
			c.Volumes = []kubernetes.Volume{{Claim: "a", ClaimPath: "../x", Path: "/srv"}}
		}, "does not lead into the claim"},
		"a deadline under a minute":        {func(c *kubernetes.Config) { c.Deadline = 1 }, "deadline:"},
		"a start timeout under one second": {func(c *kubernetes.Config) { c.StartTimeout = 1 }, "start-timeout:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := complete()
			tc.change(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAServiceThatCannotMakePodsDoesNotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*sandbox.Config)
		want   string
	}{
		"another driver":       {func(c *sandbox.Config) { c.Driver = sandbox.DriverBubblewrap }, "has only the driver `kubernetes`"},
		"its name as a driver": {func(c *sandbox.Config) { c.Driver = "kubernetes" }, "no key `driver`"},
		"a level":              {func(c *sandbox.Config) { c.Level = sandbox.LevelFull }, `cannot apply "full"`},
		"outside of a cluster": {func(*sandbox.Config) {}, "kubernetes.kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sandbox.Defaults()
			c.Driver, c.Data = "", t.TempDir()
			tc.change(&c)
			s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: slog.New(slog.DiscardHandler), Driver: complete().Driver()})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
