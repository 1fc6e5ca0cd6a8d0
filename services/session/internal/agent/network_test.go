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
		{NetworkRule{Host: "a.com", TLS: "terminate"}, "not one of pass"}, {NetworkRule{}, "host is missing"},
	} {
		_, err := NewSet(map[string]Spec{"a": {Profile: "full", Network: []NetworkRule{x.rule}}}, Coder)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.rule, err, x.want)
		}
	}
}
