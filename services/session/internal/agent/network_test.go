package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAnAgentsNetworkIsAskedForAndShown(t *testing.T) {
	s := Spec{Profile: "full", Network: []NetworkRule{
		{Host: "*.example.com"},
		{Name: "git", Host: "github.com", Ports: []int32{443}, Methods: []string{"GET"}, Paths: []string{"/x/**"}, TLS: "intercept", Credential: "github"},
	}}
	want := &sandboxv1.NetworkPolicy{Rules: []*sandboxv1.NetworkRule{
		{Host: "*.example.com", Tls: sandboxv1.NetworkTls_NETWORK_TLS_PASS},
		{
			Name: "git", Host: "github.com", Ports: []int32{443}, Methods: []string{"GET"}, Paths: []string{"/x/**"},
			Tls: sandboxv1.NetworkTls_NETWORK_TLS_INTERCEPT, Credential: "github",
		},
	}}
	if d := cmp.Diff(want, s.NetworkPolicy(), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	kept, err := Unmarshal(s.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, kept.NetworkPolicy(), protocmp.Transform()); d != "" {
		t.Errorf("as it is kept: %s", d)
	}
	shown := Agent{ID: "a", Spec: s}.Proto("m", false).GetNetwork()
	if d := cmp.Diff(&sessionv1.AgentNetworkRule{Host: "*.example.com", Tls: "pass"}, shown[0], protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if (Spec{}).NetworkPolicy() == nil {
		t.Error("an agent without a network asks for no change, which would leave it what another one had")
	}
}

func TestFaultyNetworksOfAgentsAreExplained(t *testing.T) {
	for _, x := range []struct {
		rule NetworkRule
		want string
	}{
		{NetworkRule{Host: "a.com", TLS: "terminate"}, "not one of pass"}, {NetworkRule{}, "host is missing"}, {NetworkRule{Host: "a.com\x00"}, "control character"}, {NetworkRule{Host: "a com"}, "white space"},
	} {
		_, err := NewSet(map[string]Spec{"a": {Profile: "full", Network: []NetworkRule{x.rule}}}, Coder)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.rule, err, x.want)
		}
	}
}

func TestTheModelIsToldOfTheNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		tool string
		of   []NetworkRule
		want string
	}{
		"none":         {"Bash", nil, "\n- There is no network: nothing can be downloaded."},
		"another tool": {"Read", []NetworkRule{{Host: "a"}}, ""},
		"rules": {"Bash", []NetworkRule{
			{Host: "*.example.com"}, {Host: "*", Ports: []int32{443, 8443}},
			{Name: "api", Host: "api.example.org", Methods: []string{"GET"}, Paths: []string{"/v1/**"}, TLS: "intercept", Credential: "hidden"},
		}, "\n- The network reaches only what is listed here, through the proxy in the variables HTTP_PROXY and HTTPS_PROXY. Anything else is refused:" +
			"\n  - *.example.com\n  - every host, ports 443, 8443\n  - api.example.org, methods GET, paths /v1/**, with a credential that the proxy adds"},
	} {
		if got := (Spec{Network: c.of}).DescribeNetwork(c.tool); got != c.want {
			t.Errorf("%s: got %q\nwant %q", name, got, c.want)
		}
	}
	if got := (Spec{Network: make([]NetworkRule, 30)}).DescribeNetwork("Bash"); !strings.HasSuffix(got, "\n  - and 10 more") || strings.Count(got, "\n") != 22 {
		t.Errorf("many rules: %q", got)
	}
}
