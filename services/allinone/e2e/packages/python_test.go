package packages

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

const ofPython = `plain: TURN_STATE_COMPLETE You said: plain A title
approved: TURN_STATE_COMPLETE Written, or not.
refused too late: StateError FAILED_PRECONDITION CALL_ANSWERED
denied: TURN_STATE_COMPLETE Written, or not.
a tool of the client: TURN_STATE_COMPLETE You are in Berlin {"exact":true}
a question: - Which? B
interrupted: TURN_STATE_INTERRUPTED
failed: TURN_STATE_FAILED
killed: one two three four five six seven eight nine ten gaps 0 kills 1 breaks true
resumed: true
left: 1
bad input: InvalidRequestError INVALID_ARGUMENT INVALID_REQUEST session.agent
bad turn: text
no session: NotFoundError SESSION_NOT_FOUND
sessions: 3
deleted: SESSION_NOT_FOUND
wrong key: AuthenticationError UNAUTHENTICATED Set api_key, or the variable FAIRLEAD_API_KEY, to a valid key.
wrong key, following: AuthenticationError
right key: users/ann
no server: NoConnectionError
`

func TestThePythonPackage(t *testing.T) {
	prove.Only(t, "it installs the Python package")
	python := have(t, built+"python/bin/python")
	dir := t.TempDir()
	program := filepath.Join(dir, "client.py")
	write(t, program, read(t, "testdata/client.py"))
	guarded := guard(t)
	for _, how := range [][2]string{{"sync", "sse"}, {"async", "sse"}, {"sync", "grpc"}, {"async", "grpc"}} {
		t.Run(how[0]+" over "+how[1], func(t *testing.T) {
			got := spawn(t).run(t, dir, guarded, python, program, how[0], how[1])
			if got = strings.NewReplacer("True", "true", "False", "false").Replace(got); got != ofPython {
				t.Errorf("it prints\n%s", got)
			}
		})
	}
}

func TestThePageInPython(t *testing.T) {
	prove.Only(t, "it installs the Python package")
	python := have(t, built+"python/bin/python")
	dir := t.TempDir()
	for i, first := range []string{"from fairlead import Fairlead", "import asyncio"} {
		program := filepath.Join(dir, "quick.py")
		write(t, program, strings.ReplaceAll(page(t, "python", first), "127.0.0.1:9090", "TARGET"))
		s := spawn(t)
		write(t, program, strings.ReplaceAll(read(t, program), "TARGET", s.GRPC))
		if got := s.run(t, dir, nil, python, program); got != quickly {
			t.Errorf("program %d prints\n%s", i, got)
		}
		in(t, dir, have(t, built+"python/bin/mypy"), "--strict", "--cache-dir="+dir, program)
	}
}
