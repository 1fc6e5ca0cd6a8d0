// Package demonstration shows Fairlead on a small real program whose test
// fails: a turn of the agent coder, over the REST API, in the sandbox. It
// checks that the test succeeds in the end.
package demonstration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// Demonstration is what is shown, and how.
type Demonstration struct {
	Files  fs.FS  // the workspace
	Source string // the file with the fault
	Test   string // the shell script that fails because of it
	Prompt string

	URL      string // of the REST API
	Peers    grpc.ClientConnInterface
	Root     bool // the process runs as root
	Model    string
	Scripted bool

	Out  io.Writer
	View *terminal.Renderer
}

// Run shows everything. It fails unless the turn ends COMPLETE and the test
// succeeds.
func (d Demonstration) Run(ctx context.Context) error {
	if err := d.introduce(ctx); err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	api := rest{client: &http.Client{Transport: transport}, url: d.URL}
	session, err := api.createSession(ctx, "coder")
	if err != nil {
		return err
	}
	work := workspace{peers: d.Peers, session: session}
	if err := d.before(ctx, work); err != nil {
		return err
	}
	d.title("The turn: POST %s/v1/%s/turns:stream", d.URL, session)
	d.print("\"%s\"\n\n", d.Prompt)
	end, err := api.runTurn(ctx, session, d.Prompt, d.View.Event)
	if err = errors.Join(err, d.View.Err()); err != nil {
		return err
	}
	return d.after(ctx, work, end)
}

// introduce says what runs where.
func (d Demonstration) introduce(ctx context.Context) error {
	box, err := sandboxv1.NewWorkspaceServiceClient(d.Peers).GetCapabilities(ctx, &sandboxv1.GetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("ask the sandbox what isolates commands: %w", err)
	}
	why := "because this does not run as root; `full` adds control groups and a user per workspace"
	if d.Root {
		why = "because this runs as root"
	}
	d.title("Fairlead")
	d.print("  REST      %s\n  sandbox   level %s, by %s, %s\n  model     %s\n", d.URL, box.GetLevel(), box.GetDriver(), why, d.Model)
	if d.Scripted {
		d.print("            (a script, no AI: its words are fixed; the files, the commands and their results are real)\n")
	}
	return nil
}

// before shows the program and that its test fails.
func (d Demonstration) before(ctx context.Context, w workspace) error {
	if err := w.seed(ctx, d.Files); err != nil {
		return err
	}
	source, err := fs.ReadFile(d.Files, d.Source)
	if err != nil {
		return err
	}
	d.title("The workspace: %s", d.Source)
	d.quote(string(source))
	d.title("Its test fails: sh %s, in the sandbox", d.Test)
	output, code, err := w.run(ctx, w.call("demo-before", epochBefore), "sh", d.Test)
	if err != nil {
		return err
	}
	d.quote(output)
	if code == 0 {
		return errors.New("the test of the demonstration passes before anything was repaired")
	}
	return nil
}

// after checks what the turn has done.
func (d Demonstration) after(ctx context.Context, w workspace, end *sessionv1.TurnFinished) error {
	d.title("Checked, without the agent")
	if end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
		return fmt.Errorf("the turn ended %s: %s", terminal.State(end.GetState()), terminal.Clean(end.GetError().GetMessage()))
	}
	now, code, err := w.run(ctx, w.call("demo-read", epochAfter), "cat", d.Source)
	if err != nil || code != 0 {
		return errors.Join(fmt.Errorf("%s cannot be read after the turn", d.Source), err)
	}
	before, err := fs.ReadFile(d.Files, d.Source)
	if err != nil {
		return err
	}
	d.print("What changed in %s:\n", d.Source)
	d.quote(changes(string(before), now))
	test, err := fs.ReadFile(d.Files, d.Test)
	if err != nil {
		return err
	}
	kept, code, err := w.run(ctx, w.call("demo-test", epochAfter), "cat", d.Test)
	if err != nil || code != 0 || kept != string(test) {
		return errors.Join(fmt.Errorf("%s is not the test that it was before the turn", d.Test), err)
	}
	output, code, err := w.run(ctx, w.call("demo-after", epochAfter), "sh", d.Test)
	if err != nil {
		return err
	}
	d.print("sh %s:\n", d.Test)
	d.quote(output)
	if code != 0 {
		return fmt.Errorf("the test still fails, with exit code %d", code)
	}
	d.print("The turn is COMPLETE and the test is green.\n")
	return nil
}

// changes returns the lines that only one of two texts has.
func changes(before, after string) string {
	old, current := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(old) > 0 && len(current) > 0 && old[0] == current[0] {
		old, current = old[1:], current[1:]
	}
	for len(old) > 0 && len(current) > 0 && old[len(old)-1] == current[len(current)-1] {
		old, current = old[:len(old)-1], current[:len(current)-1]
	}
	var b strings.Builder
	for _, line := range old {
		b.WriteString("- " + line + "\n")
	}
	for _, line := range current {
		b.WriteString("+ " + line + "\n")
	}
	return b.String()
}

func (d Demonstration) title(format string, args ...any) { d.print("\n== "+format+"\n\n", args...) }

// quote shows a text, indented.
func (d Demonstration) quote(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(terminal.Clean(text), "\n"), "\n") {
		d.print("    %s\n", line)
	}
}

func (d Demonstration) print(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format, args...) }
