package integration

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// outside is a server on the host, and its port.
func outside(t *testing.T) (*httptest.Server, int) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "seen %s %s", r.Method, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return s, port
}

func ceiling(ports ...int) func(*sandbox.Config) {
	return func(c *sandbox.Config) {
		c.Egress.Ceiling = []egress.Rule{{Host: "127.0.0.0/8", Ports: ports}, {Host: "localhost", Ports: ports}, {Host: "*.example.com"}}
	}
}

func (c *client) network(t *testing.T, rules ...*sandboxv1.NetworkRule) error {
	t.Helper()
	_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
		Call: c.call(), Network: &sandboxv1.NetworkPolicy{Rules: rules},
	})
	return err
}

func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("curl is not on this machine: install it")
		}
		t.Skip("curl is not on this machine")
	}
}

// curl asks by the proxy, which NO_PROXY would keep it from for this name.
const curl = "curl -sS --noproxy '' -m 10 "

func TestASpareHasANetworkOrNot(t *testing.T) {
	t.Parallel()
	needCurl(t)
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		_, port := outside(t)
		cfg := configuration(t, level)
		change(&cfg)
		ceiling(port)(&cfg)
		cfg.SpareSandboxes = 1
		c := start(t, cfg)
		one, two := *c, *c
		one.session, two.session = "sessions/with", "sessions/without"
		ask := curl + fmt.Sprintf("http://127.0.0.1:%d/", port)
		_, err := one.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
			Call: one.call(), Warm: true,
			Network: &sandboxv1.NetworkPolicy{Rules: []*sandboxv1.NetworkRule{{Host: "127.0.0.0/8", Ports: []int32{int32(port)}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := one.bash(t, ask); r.out != "seen GET /" || len(r.GetNetwork()) != 1 {
			t.Errorf("with a network: %q %q", r.out, r.err)
		}
		two.ensure(t.Context(), t)
		if r := two.bash(t, "curl -sS -m 5 http://127.0.0.1:3128/; "+ask); r.out != "" {
			t.Errorf("without: %q %q", r.out, r.err)
		}
	})
}

func TestCommandsReachWhatTheirWorkspaceMay(t *testing.T) {
	t.Parallel()
	needCurl(t)
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		_, port := outside(t)
		c := open(t, level, change, ceiling(port))
		if r := c.bash(t, "env | grep -i proxy; ls /proc/net/tcp >/dev/null; curl -sS -m 5 http://127.0.0.1:3128/"); strings.Contains(r.out, "3128") || r.GetExitCode() != 7 {
			t.Fatalf("without a policy: %d %q %q", r.GetExitCode(), r.out, r.err)
		}
		ports := []int32{int32(port)}
		if err := c.network(t, &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: ports}, &sandboxv1.NetworkRule{
			Name: "api", Host: "localhost", Ports: ports, Paths: []string{"/v1/**"},
		}); err != nil {
			t.Fatal(err)
		}
		r := c.bash(t, curl+fmt.Sprintf("'http://localhost:%d/v1/x?token=hidden'", port))
		if r.out != "seen GET /v1/x" {
			t.Fatalf("what is allowed: %q %q", r.out, r.err)
		}
		if len(r.GetNetwork()) != 1 {
			t.Fatalf("told %v", r.GetNetwork())
		}
		u := r.GetNetwork()[0]
		if u.GetHost() != "localhost" || u.GetRule() != "api" || u.GetOutcome() != sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE ||
			u.GetConnections() != 1 || u.GetReceivedBytes() != 14 || strings.Contains(u.String(), "hidden") {
			t.Errorf("told %v", u)
		}
		for _, x := range []struct{ name, script, want string }{
			{"another path", curl + fmt.Sprintf("http://localhost:%d/v2", port), "not allowed by rule"},
			{"another host", curl + "http://evil.org/", "no rule"},
			{"metadata", curl + "http://169.254.169.254/latest/", "not allowed"},
			{"another port of the host", curl + "http://localhost:22/", "port 22"},
			{"past the proxy", fmt.Sprintf("curl -sS --noproxy '*' -m 5 http://127.0.0.1:%d/ 2>&1", port), "connect"},
			{"past the proxy by a route", "curl -sS --noproxy '*' -m 5 http://192.0.2.1/ 2>&1", "connect"},
			{"the trusted certificates", "grep -c BEGIN $SSL_CERT_FILE; echo END", "END"},
		} {
			if r := c.bash(t, x.script); !strings.Contains(r.out, x.want) || strings.Contains(r.out, "seen") {
				t.Errorf("%s: %q %q", x.name, r.out, r.err)
			}
		}
		if err := c.network(t); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "env | grep -i proxy; curl -sS -m 5 http://127.0.0.1:3128/"); strings.Contains(r.out, "3128") || r.GetExitCode() != 7 {
			t.Errorf("after it was taken away: %d %q %q", r.GetExitCode(), r.out, r.err)
		}
	})
}

func TestCommandsAtOnceAreToldApart(t *testing.T) {
	t.Parallel()
	needCurl(t)
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		_, port := outside(t)
		c := open(t, level, change, ceiling(port))
		if err := c.network(t, &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: []int32{int32(port)}}); err != nil {
			t.Fatal(err)
		}
		done := make(chan result)
		for i := range 3 {
			go func() {
				r, err := c.exec(t.Context(), fmt.Sprintf("for i in $(seq %d); do %s http://127.0.0.1:%d/ >/dev/null; done", i+1, curl, port), nil)
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
		}
		counts := map[int]bool{}
		for range 3 {
			counts[len((<-done).GetNetwork())] = true
		}
		if !counts[1] || !counts[2] || !counts[3] {
			t.Errorf("told %v connections, want 1, 2 and 3", counts)
		}
	})
}

func TestCommandsThatRunKeepTheirNetworkAndStandStillWithTheOthers(t *testing.T) {
	t.Parallel()
	needCurl(t)
	if os.Getuid() != 0 {
		t.Skip("only level full freezes")
	}
	_, port := outside(t)
	c := open(t, sandbox.LevelFull, ceiling(port))
	rule := &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: []int32{int32(port)}}
	if err := c.network(t, rule); err != nil {
		t.Fatal(err)
	}
	old := make(chan result)
	go func() {
		r, err := c.exec(t.Context(), fmt.Sprintf("touch ready; while [ ! -e go ]; do sleep 0.01; done; %s http://127.0.0.1:%d/", curl, port), nil)
		if err != nil {
			t.Error(err)
		}
		old <- r
	}()
	if r := c.bash(t, "while [ ! -e ready ]; do sleep 0.01; done"); r.GetExitCode() != 0 {
		t.Fatal(r.err)
	}
	if err := c.network(t); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "echo ${http_proxy:-none}; exit 3"); r.out != "none\n" {
		t.Errorf("a new command has the network %q", r.out)
	}
	r, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call(), Description: "test"})
	if err != nil || r.GetFrozen().AsDuration() <= 0 {
		t.Errorf("they did not stand still: %v, %v", r, err)
	}
	c.bash(t, "touch go")
	if r := <-old; r.out != "seen GET /" {
		t.Errorf("the old one lost its network: %q %q", r.out, r.err)
	}
	first := c.bash(t, "echo x >/tmp/kept; echo ok")
	second := c.bash(t, "cat /tmp/kept")
	if first.out != "ok\n" || second.out != "x\n" {
		t.Errorf("afterwards commands do not share a sandbox: %q %q", second.out, second.err)
	}
}

func TestAPolicyThatIsNotValidIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, ceiling(80))
	for _, r := range []*sandboxv1.NetworkRule{
		{Host: "evil.org"}, {Host: "0x7f.1"}, {Host: "api.example.com", Credential: "nobody's", Tls: sandboxv1.NetworkTls_NETWORK_TLS_UPGRADE},
		{Host: "api.example.com", Methods: []string{"TRACE"}},
	} {
		err := c.network(t, r)
		wantReason(t, err, "BAD_NETWORK_POLICY")
		if apierr.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", r, err)
		}
	}
	if r := c.bash(t, "env | grep -ci proxy"); r.out != "0\n" {
		t.Errorf("a policy that was refused took effect: %q", r.out)
	}
}

// A command says to the proxy whatever it likes, and as much of it. What is told of
// that must not stand in the way of its end.
func TestWhatIsToldOfTheNetworkIsShort(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, ceiling())
	if err := c.network(t, &sandboxv1.NetworkRule{Host: "*.example.com", Methods: []string{"GET"}}); err != nil {
		t.Fatal(err)
	}
	r := c.bash(t, `for i in {1..90}; do
		exec 3<>/dev/tcp/127.0.0.1/3128
		printf '%060000d http://h%d.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' 0 $i >&3
		cat <&3 >/dev/null
	done; echo done`)
	if r.out != "done\n" || len(r.GetNetwork()) != 90 {
		t.Fatalf("it ended %v, %q, and told of %d", r.GetReason(), r.err, len(r.GetNetwork()))
	}
	for _, u := range r.GetNetwork() {
		if len(u.GetMessage()) > 2000 || !strings.Contains(u.GetMessage(), "000") {
			t.Fatalf("%d bytes: %.300s", len(u.GetMessage()), u.GetMessage())
		}
	}
}

// A command may end and leave something open that the outside does not end.
func TestWhatIsOpenAtACommandsEndIsItsOwn(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it accepts nothing, and so answers nothing
	port := l.Addr().(*net.TCPAddr).Port
	c := open(t, sandbox.LevelAuto, ceiling(port))
	if err := c.network(t, &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: []int32{int32(port)}}, &sandboxv1.NetworkRule{
		Host: "localhost", Ports: []int32{int32(port)}, Tls: sandboxv1.NetworkTls_NETWORK_TLS_RAW,
	}); err != nil {
		t.Fatal(err)
	}
	const proxy = `exec 3<>/dev/tcp/127.0.0.1/3128; `
	for name, tc := range map[string]struct {
		script string
		told   int
	}{
		"a tunnel":                  {proxy + fmt.Sprintf(`printf 'CONNECT localhost:%d HTTP/1.1\r\nHost: x\r\n\r\n' >&3; read -r l <&3; read -r l <&3; printf secret >&3`, port), 1},
		"a request, and half a one": {proxy + fmt.Sprintf(`printf 'GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n' >&3; sleep 0.1; printf 'GET http' >&3; sleep 0.1`, port), 1},
	} {
		if r := c.bash(t, tc.script); len(r.GetNetwork()) != tc.told || r.err != "" {
			t.Errorf("%s: told %d: %v %q", name, len(r.GetNetwork()), r.GetNetwork(), r.err)
		}
		if r := c.bash(t, "true"); len(r.GetNetwork()) != 0 {
			t.Errorf("%s: the next command is told %v", name, r.GetNetwork())
		}
	}
}

// connections is how many a command has made, as is told.
func connections(r result) (n int) {
	for _, u := range r.GetNetwork() {
		n += int(u.GetConnections())
	}
	return n
}

// What names no command is told with one that runs in the same sandbox, also where each has its
// own.
func TestWhatNamesNobodyIsToldWithACommandOfItsSandbox(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, c *client, apart bool) {
		if err := c.network(t, &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: []int32{1}}); err != nil {
			t.Fatal(err)
		}
		first := make(chan result)
		go func() {
			r, err := c.exec(t.Context(), `: > here; until [ -e go ]; do sleep 0.01; done; exec {fd}<>/dev/tcp/127.0.0.1/3128; printf 'GET http://127.0.0.1:2/ HTTP/1.0\r\n\r\n' >&$fd; cat <&$fd >/dev/null; : > came`, nil)
			if err != nil {
				t.Error(err)
			}
			first <- r
		}()
		for _, err := c.read(t, "here"); err != nil && t.Context().Err() == nil; _, err = c.read(t, "here") {
			runtime.Gosched()
		}
		second := c.bash(t, `: > go; until [ -e came ]; do sleep 0.01; done`)
		n, m := connections(<-first), connections(second)
		if want := map[bool][2]int{true: {1, 0}, false: {0, 1}}[apart]; want != [2]int{n, m} { // the last one that was started, or the only one
			t.Errorf("the first is told %d, the second %d", n, m)
		}
	}
	eachDriver(t, func(t *testing.T, d driver) {
		test(t, d.start(t, ceiling(1)), d.level == sandbox.LevelBasic || d.name == gVisor)
	})
	t.Run(inPods, func(t *testing.T) {
		change := pods(t)
		test(t, open(t, levelPod, change, ceiling(1)), true)
	})
}

// The service's own processes in a sandbox are not commands: they are not counted.
func TestCommandsOfTheServiceTakeNoConnections(t *testing.T) {
	t.Parallel()
	needCurl(t)
	f := gittest.New(t)
	f.Publish("app", map[string]string{"README.md": "hello\n"})
	_, port := outside(t)
	c := open(t, sandbox.LevelAuto, ceiling(port), allow(f))
	if err := c.network(t, &sandboxv1.NetworkRule{Host: "127.0.0.0/8", Ports: []int32{int32(port)}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); err != nil {
		t.Fatal(err)
	}
	const asked = 40
	told := make(chan int)
	go func() {
		r, err := c.exec(t.Context(), fmt.Sprintf("for ((i = 0; i < %d; i++)); do %s --proxy http://repositories:x@127.0.0.1:3128 http://127.0.0.1:%d/; done", asked, curl, port), nil)
		if err != nil {
			t.Error(err)
		}
		told <- len(r.GetNetwork())
	}()
	for {
		select {
		case n := <-told:
			if n != asked {
				t.Errorf("told %d of %d", n, asked)
			}
			return
		default:
			if _, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "app"}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
