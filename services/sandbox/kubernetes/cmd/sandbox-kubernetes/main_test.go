package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

const prefix = "FAIRLEAD_SANDBOX_"

func TestDeployedVariablesAreKeys(t *testing.T) {
	c := defaults()
	known := map[string]bool{}
	for _, row := range config.Table(&c, config.Options{Prefix: prefix}) {
		known[row.Env] = true
	}
	manifest, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "deploy", "k8s", "pods", "sandbox.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\b`+prefix+`[A-Z_]+`).FindAllString(string(manifest), -1)
	if len(found) < 10 {
		t.Errorf("only %d variables were found", len(found))
	}
	for _, variable := range found {
		if !known[variable] {
			t.Errorf("the program does not read %s", variable)
		}
	}
}

func TestAConfigurationThatFitsIsLoaded(t *testing.T) {
	load := func(args ...string) error {
		c := defaults()
		return config.Load(&c, config.Options{Prefix: prefix, Environ: []string{"A=b"}, Args: args})
	}
	if err := load("--kubernetes.image=image", "--kubernetes.claim=claim", "--kubernetes.node=node"); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"kubernetes.image: ", "kubernetes.claim: ", "kubernetes.pod, node: "} {
		if err := load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q: %v", want, err)
		}
	}
}
