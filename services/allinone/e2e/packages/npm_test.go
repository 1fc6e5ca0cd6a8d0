package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// project makes an empty project and installs the package in it. It returns the folder, and the program node.
func project(t *testing.T) (dir, node string) {
	t.Helper()
	pack, node := have(t, built+"npm/*.tgz"), have(t, tools+"node/bin/node")
	dir = t.TempDir()
	write(t, filepath.Join(dir, "package.json"), `{"name": "empty", "private": true, "type": "module"}`)
	in(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--omit=peer", "--cache="+t.TempDir(), pack)
	return dir, node
}

// link gives the project packages that people have besides.
func link(t *testing.T, dir string, packages ...string) {
	t.Helper()
	for _, p := range packages {
		to := filepath.Join(dir, "node_modules", p)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(have(t, tools+p), to); err != nil {
			t.Fatal(err)
		}
	}
}

// typecheck compiles the project's programs as strictly as can be, the package's types too.
func typecheck(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "tsconfig.json"), `{"compilerOptions": {"strict": true, "target": "es2023", "module": "nodenext", "moduleResolution": "nodenext",
  "lib": ["es2024", "dom", "dom.iterable", "dom.asynciterable", "esnext.disposable"], "types": ["node"], "jsx": "react-jsx", "noEmit": true, "preserveSymlinks": true}}`)
	in(t, dir, have(t, tools+".bin/tsc"), "--project", dir)
}

const ofNode = `plain: TURN_STATE_COMPLETE You said: plain
again: A title 1 2
approved: TURN_STATE_COMPLETE I write it down.|[Write TOOL_OUTCOME_OK]|Written, or not.
refused too late: true FAILED_PRECONDITION CALL_ANSWERED
denied: TURN_STATE_COMPLETE I write it down.|[Write TOOL_OUTCOME_REFUSED]|Written, or not.
approved from the list: TURN_STATE_COMPLETE I write it down.|[Write TOOL_OUTCOME_OK]|Written, or not.
a tool of the client: TURN_STATE_COMPLETE [where TOOL_OUTCOME_OK]|You are in Berlin {"exact":true}
a question: TURN_STATE_COMPLETE [AskUserQuestion TOOL_OUTCOME_OK]|You chose: The user answered:
- Which? B
interrupted: TURN_STATE_INTERRUPTED
failed: TURN_STATE_FAILED
killed: one two three four five six seven eight nine ten gaps 0 breaks true
resumed: true
sent while it was down: 2 You said: while it is down
aborted: AbortError
left: true
bad input: true INVALID_ARGUMENT INVALID_REQUEST session.agent 400 true
bad turn: INVALID_REQUEST text
no session: true SESSION_NOT_FOUND
no server: true Check baseURL, and that the server runs.
sessions: 3 SESSION_NOT_FOUND
wrong key: true UNAUTHENTICATED 401 Set apiKey, or the variable FAIRLEAD_API_KEY, to a valid key.
wrong key, following: true
right key: users/ann
`

func TestTheNpmPackage(t *testing.T) {
	prove.Only(t, "it installs the npm package")
	dir, node := project(t)
	if found, _ := filepath.Glob(filepath.Join(dir, "node_modules", "[^.]*")); len(found) != 1 {
		t.Errorf("the package brings others: %v", found)
	}
	write(t, filepath.Join(dir, "client.ts"), read(t, "testdata/client.ts"))
	quick := page(t, "ts", `import { Fairlead } from "@fairlead/client";`)
	write(t, filepath.Join(dir, "quick.ts"), quick)
	link(t, dir, "@types/node", "undici-types")
	typecheck(t, dir)
	s := spawn(t)
	if got := s.run(t, dir, nil, node, "--disable-warning=ExperimentalWarning", "quick.ts"); got != quickly {
		t.Errorf("the page's program prints\n%s", got)
	}
	s = spawn(t)
	if got := s.run(t, dir, guard(t), node, "--disable-warning=ExperimentalWarning", "client.ts"); got != ofNode {
		t.Errorf("it prints\n%s", got)
	}
}

// quickly is what the quick start prints in every language.
const quickly = "I write it down.Written, or not.\nTURN_STATE_COMPLETE\n"

func TestTheHookInAPage(t *testing.T) {
	prove.Only(t, "it renders the hook in a page")
	dir, node := project(t)
	link(t, dir, "react", "react-dom", "scheduler", "@types/react", "csstype", "happy-dom", "@testing-library/react", "@types/node", "undici-types")
	chat := page(t, "tsx", `import { Fairlead } from "@fairlead/client";`)
	s := spawn(t)
	write(t, filepath.Join(dir, "chat.tsx"), strings.ReplaceAll(chat, "http://127.0.0.1:8080", s.URL))
	write(t, filepath.Join(dir, "page.mjs"), read(t, "testdata/page.mjs"))
	typecheck(t, dir)
	in(t, dir, have(t, tools+".bin/esbuild"), "chat.tsx", "--outfile=chat.mjs", "--jsx=automatic", "--log-level=error")
	got := s.run(t, dir, nil, node, "page.mjs")
	const want = `asked: Allow Write
approved: I write it down. Write Written, or not.
in the middle: one two three
disconnected: true
after the kill: one two three four five six seven eight nine ten
stopped: stopped
mistake: text
unmounted: true
`
	if got != want {
		t.Errorf("it prints\n%s", got)
	}
}
