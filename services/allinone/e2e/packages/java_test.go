package packages

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// java returns the page's command for the example, with its message in place of the page's one. It needs no network, for
// `make packages` has fetched all. Where the plugin of gRPC is installed, it is the one that make has used.
func java(t *testing.T, message string) []string {
	t.Helper()
	prove.Only(t, "it runs Maven")
	have(t, built+"java/.stamp")
	_, command, _ := strings.Cut(page(t, "sh", "make .protodeps/.stamp"), "\n")
	command = strings.Replace(command, `"hello"`, `"`+message+`"`, 1)
	maven := "mvn --offline"
	if plugin, err := exec.LookPath("grpc_java_plugin"); err == nil {
		maven += " -Dgrpc.plugin=" + plugin
	}
	return []string{"sh", "-c", strings.Replace(command, "mvn", maven, 1)}
}

// reset is what Debian's Maven prints at its end, also where there are no colors.
const reset = "\x1b[0m"

func TestTheExampleInJava(t *testing.T) {
	run := java(t, "hello")
	s := server{wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER})}
	const want = "I write it down.\n[Write is approved]\nWritten, or not.\nTURN_STATE_COMPLETE\n"
	got := s.run(t, root, []string{"FAIRLEAD_API_KEY=" + s.Keys["ann"]}, run...)
	if got = strings.TrimSuffix(got, reset+"\n"); got != want {
		t.Errorf("it prints\n%s", got)
	}
	wrong := exec.CommandContext(t.Context(), run[0], run[1:]...)
	wrong.Dir = root
	wrong.Env = append(os.Environ(), "FAIRLEAD_API_KEY=wrong", "FAIRLEAD_TARGET="+s.GRPC)
	if out, err := wrong.CombinedOutput(); err == nil || !strings.Contains(string(out), "UNAUTHENTICATED: ") {
		t.Errorf("with a wrong key it ends with %v and prints\n%s", err, out)
	}
}

func TestTheExampleInJavaGoesOnAfterABreak(t *testing.T) {
	run, s := java(t, "slow"), spawn(t)
	cmd := exec.CommandContext(t.Context(), run[0], run[1:]...)
	cmd.Dir, cmd.Stderr = root, t.Output()
	cmd.Env = append(os.Environ(), "FAIRLEAD_API_KEY=", "FAIRLEAD_TARGET="+s.GRPC)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	words := bufio.NewScanner(out)
	words.Split(bufio.ScanWords)
	var all []string
	for words.Scan() {
		if all = append(all, words.Text()); words.Text() == "three" && len(all) == 3 {
			s.Kill()
			s.Start(t)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v after %v", err, all)
	}
	const want = "one two three four five six seven eight nine ten TURN_STATE_COMPLETE"
	if got := strings.TrimSuffix(strings.Join(all, " "), " "+reset); !strings.HasSuffix(got, want) || got == want {
		t.Errorf("it prints %s, want the text again from the restarted step on", got)
	}
}
