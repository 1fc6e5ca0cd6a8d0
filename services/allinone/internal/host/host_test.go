package host

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDataOfTheServicesFollowsTheDirectory(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string // data, session, tools, sandbox
	}{
		{"where nothing is said", nil, []string{"/home/me/fairlead", "/home/me/fairlead", "/home/me/fairlead", "/home/me/fairlead/sandbox"}},
		{"where the directory is said", []string{"--data=/srv/f"}, []string{"/srv/f", "/srv/f", "/srv/f", "/srv/f/sandbox"}},
		{"unless a service's own is", []string{"--data=/srv/f", "--sandbox.data=/big", "--tools.data={data}/tools"}, []string{"/srv/f", "/srv/f", "/srv/f/tools", "/big"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := Defaults("/home/me/fairlead")
			if err := config.Load(&conf, config.Options{Name: "test", Prefix: "FAIRLEAD_", Args: c.args, Environ: []string{"A=b"}}); err != nil {
				t.Fatal(err)
			}
			if err := conf.place(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, []string{conf.Data, conf.Session.Data, conf.Tools.Data, conf.Sandbox.Data}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARelativeDirectoryBecomesAbsolute(t *testing.T) {
	conf := Defaults("here")
	if err := conf.place(); err != nil || !filepath.IsAbs(conf.Data) || !filepath.IsAbs(conf.Sandbox.Data) {
		t.Errorf("%s, %s, %v", conf.Data, conf.Sandbox.Data, err)
	}
}

func TestAnEmptyDirectoryIsRefused(t *testing.T) {
	if err := Defaults("").Validate(); err == nil || !strings.Contains(err.Error(), "data: is empty") {
		t.Errorf("error %v", err)
	}
}

func TestScripted(t *testing.T) {
	conf := Defaults("d")
	if err := config.Load(&conf, config.Options{Name: "test", Environ: []string{"A=b"}, Args: []string{"--config=" + file(t, "session: {providers: {play: {kind: scripted, scenario: x.yaml}}}")}}); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]bool{"scripted:default": true, "play:e2e": true, "anthropic:claude": false, "": false} {
		if got := conf.Scripted(model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
}

func TestTypingErrorsInAgentsAndProfilesRefuseTheStart(t *testing.T) {
	for name, tt := range map[string]struct{ config, want string }{
		"a tool":            {"session: {agents: {mine: {profile: full, tools: [bash]}}}", `agent "mine": tools: there is no tool "bash"; did you mean Bash?`},
		"a profile":         {"session: {agents: {mine: {profile: readonly}}}", `agent "mine": profile: there is no permission profile "readonly"; did you mean read-only?`},
		"a provider":        {"session: {model: 'antropic:xyz'}", `the model "antropic:xyz" is not known`},
		"a name of nothing": {"session: {agents: {mine: {profile: nonesuch, tools: [Telepathy]}}}", `there is no tool "Telepathy"`},
		"a rule":            {"tools: {profiles: {mine: {allow: [Read], deny: [bash]}}}", `profile mine: rule "bash": there is no such tool; did you mean Bash?`},
		"names that are":    {"tools: {profiles: {mine: {allow: [Read, 'mcp__files__*', '*']}}}\nsession: {agents: {mine: {profile: mine, tools: [Read]}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := Defaults(t.TempDir())
			conf.Sandbox.Driver, conf.Sandbox.NoIsolation = "none", true
			if err := config.Load(&conf, config.Options{Name: "test", Environ: []string{"A=b"}, Args: []string{"--config=" + file(t, tt.config)}}); err != nil {
				t.Fatal(err)
			}
			h, err := New(t.Context(), conf, telemetry.Discard(slog.New(slog.DiscardHandler)), "1")
			switch {
			case err == nil:
				err = h.Close()
				if tt.want != "" || err != nil {
					t.Errorf("it starts; %v", err)
				}
			case tt.want == "" || !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v", err)
			}
		})
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheServicesMeetInTheProcess(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
	dir, err := os.MkdirTemp("", "fairlead-host-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	conf := Defaults(dir)
	conf.HTTP, conf.GRPC = "127.0.0.1:0", ""
	conf.Session.Models.Model = "scripted:default"
	h, err := New(t.Context(), conf, telemetry.Discard(slog.New(slog.DiscardHandler)), "test")
	if err != nil {
		t.Fatal(err)
	}
	if !h.Scripted || h.Data != dir {
		t.Errorf("model %s, scripted %v, data %s", h.Model, h.Scripted, h.Data)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(_, at string) { address <- at }) }()
	box, err := sandboxv1.NewWorkspaceServiceClient(h.Peers).GetCapabilities(principal.With(ctx, principal.Service("default", "default")), &sandboxv1.GetCapabilitiesRequest{})
	if err != nil || box.GetLevel() == "" {
		t.Errorf("sandbox: %v, %v", box, err)
	}
	transport := &http.Transport{}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+<-address+"/v1/sessions", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	transport.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("sessions: %s", resp.Status)
	}
	second := conf
	if other, err := New(t.Context(), second, telemetry.Discard(slog.New(slog.DiscardHandler)), "test"); err == nil {
		t.Errorf("a second host took the same directory")
		_ = other.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}
