package configtable

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// deployed are the folders and files of deploy/ that set variables.
const deployed = "../../../../deploy"

// keys are the variables that each service reads.
func keys() map[string]map[string]bool {
	sess, tool, box, gate := sessionProgram(), toolsProgram(), sandboxProgram(), gatewayProgram()
	all := map[string]map[string]bool{}
	for name, dst := range map[string]any{"session": &sess, "tools": &tool, "sandbox": &box, "gateway": &gate} {
		all[name] = map[string]bool{}
		for _, row := range config.Table(dst, config.Options{Name: name, Prefix: "FAIRLEAD_" + strings.ToUpper(name) + "_"}) {
			all[name][row.Env] = true
		}
	}
	return all
}

var variable = regexp.MustCompile(`\bFAIRLEAD_[A-Z_]+`)

func TestDeployedVariablesAreKeysOfTheirService(t *testing.T) {
	t.Parallel()
	known := keys()
	checked := 0
	check := func(t *testing.T, service, text string) {
		t.Helper()
		for _, name := range variable.FindAllString(text, -1) {
			if checked++; !known[service][name] {
				t.Errorf("%s does not read %s", service, name)
			}
		}
	}
	for service := range known {
		t.Run("Kubernetes: "+service, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(deployed, "k8s", service+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			lines := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(string(text), "")
			check(t, service, lines)
		})
		t.Run("compose: "+service, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(deployed, "compose.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var file struct {
				Services map[string]struct{ Environment map[string]string }
			}
			if err := yaml.Unmarshal(text, &file); err != nil {
				t.Fatal(err)
			}
			if len(file.Services[service].Environment) == 0 {
				t.Fatal("the service is missing or has no environment")
			}
			for name := range file.Services[service].Environment {
				check(t, service, name)
			}
		})
	}
	if checked < 20 {
		t.Errorf("only %d variables were found", checked)
	}
}

func TestDeployManifestsAreYAML(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(deployed, "k8s", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder, documents := yaml.NewDecoder(f), 0
		for {
			var object struct{ Kind, APIVersion string }
			if err := decoder.Decode(&object); err != nil {
				if documents == 0 || err.Error() != "EOF" {
					t.Errorf("%s: after %d documents: %v", file, documents, err)
				}
				break
			}
			if documents++; object.Kind == "" {
				t.Errorf("%s: document %d has no kind", file, documents)
			}
		}
		_ = f.Close()
	}
}
