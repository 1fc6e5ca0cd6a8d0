package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAWrongAddressSaysWhereTheRightOneIs(t *testing.T) {
	t.Parallel()
	rest := httptest.NewServer(http.NotFoundHandler())
	defer rest.Close()
	http1 := rest.Listener.Addr().String()
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nothing := closed.Addr().String()
	_ = closed.Close()
	public := serveFake(t, &fakeSessions{})
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"run on REST":            {[]string{"run", "--server", http1, "hi"}, http1 + " is the server's REST address"},
		"a list on REST":         {[]string{"sessions", "list", "--server", http1}, "which the server prints at its start"},
		"nodes on REST":          {[]string{"nodes", "--peer", http1}, "is not a peer listener; --peer takes the address that a server prints after peer"},
		"nodes on public gRPC":   {[]string{"nodes", "--peer", public}, "is not a peer listener; --peer takes the address that a server prints after peer"},
		"nodes without listener": {[]string{"nodes", "--peer", nothing}, "no peer listener can be reached at " + nothing + "; --peer takes"},
		"drain on public gRPC":   {[]string{"nodes", "drain", "n", "--peer", public}, "is not a peer listener"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := fairlead(t.Context(), "", nil, c.args...)
			if code != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, want %q in:\n%s", code, c.want, errs)
			}
		})
	}
}

func TestAWrongFlagOfACommandNamesItsHelpAndTheNearFlag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"a part of a name":   {[]string{"schedules", "create", "one", "@daily", "hi", "--time-zone=UTC"}, []string{`did you mean "--zone"?`, "fairlead schedules create --help"}},
		"a typing error":     {[]string{"run", "--sesion=one", "hi"}, []string{`did you mean "--session"?`, "fairlead run --help"}},
		"nothing near":       {[]string{"run", "--dance", "hi"}, []string{"unknown flag --dance (fairlead run --help"}},
		"no command":         {[]string{"--dance"}, []string{"fairlead --help"}},
		"a missing argument": {[]string{"sessions", "show"}, []string{"fairlead sessions show --help"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := fairlead(t.Context(), "", nil, c.args...)
			for _, want := range c.want {
				if code != 2 || !strings.Contains(errs, want) {
					t.Errorf("exit code %d, want %q in:\n%s", code, want, errs)
				}
			}
		})
	}
}
