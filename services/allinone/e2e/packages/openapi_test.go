package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// openapiTools is what checks the specification, and makes clients of it.
const openapiTools = root + "deploy/tools/openapi/"

// specification writes the specification of a server where generators find it.
func specification(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "openapi.json")
	write(t, file, string(openapi.JSON))
	return dir, file
}

// runs runs a program that calls a server which asks for a key.
func runs(t *testing.T, dir string, program ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), guard(t)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestAClientInTypeScriptIsMadeOfTheSpecification(t *testing.T) {
	prove.Only(t, "it makes a client with npm's packages")
	modules := have(t, openapiTools+"node_modules")
	bin := modules + "/.bin/"
	dir, file := specification(t)
	t.Setenv("REDOCLY_TELEMETRY", "off")
	in(t, dir, bin+"redocly", "lint", "--config", have(t, openapiTools+"redocly.yaml"), "--max-problems", "20", file)
	in(t, dir, bin+"openapi-typescript", file, "-o", filepath.Join(dir, "made.d.ts"))
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "package.json"), `{"type":"module"}`)
	write(t, filepath.Join(dir, "client.ts"), read(t, "testdata/openapi.ts"))
	in(t, dir, bin+"tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom,dom.iterable", "client.ts")
	const want = `the same turn: true
the stream ends: TURN_STATE_COMPLETE
the turn: TURN_STATE_COMPLETE
the log ends: TURN_STATE_COMPLETE
an error: 5 404
`
	if got := runs(t, dir, "node", "client.js"); got != want {
		t.Errorf("the client prints\n%s", got)
	}
}

func TestAClientInPythonIsMadeOfTheSpecification(t *testing.T) {
	prove.Only(t, "it makes a client with a package of PyPI")
	python := have(t, root+"bin/openapi-client/bin/python")
	bin := filepath.Dir(python)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH")) // it formats what it has made
	dir, file := specification(t)
	in(t, dir, filepath.Join(bin, "openapi-python-client"), "generate", "--fail-on-warning", "--config", have(t, openapiTools+"python.yaml"),
		"--path", file, "--output-path", filepath.Join(dir, "made"), "--meta", "none")
	write(t, filepath.Join(dir, "client.py"), read(t, "testdata/openapi.py"))
	const want = `the same turn: True
the stream ends: True
the turn: TURN_STATE_COMPLETE
the message: plain
the file: 200
without the key: 401 True
`
	if got := runs(t, dir, python, "client.py"); got != want {
		t.Errorf("the client prints\n%s", got)
	}
}
