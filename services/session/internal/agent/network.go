package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// NetworkRule allows some network requests of the agent's commands. The sandbox
// service checks the rules, because it knows what its operator allows.
type NetworkRule struct {
	Name       string   `key:"name" json:"name,omitempty" help:"shown in refusals; empty: the host"`
	Host       string   `key:"host" json:"host" help:"a name, *.name, *, an address or a range of addresses"`
	Ports      []int32  `key:"ports" json:"ports,omitempty" help:"ports; none: 80 and 443"`
	Methods    []string `key:"methods" json:"methods,omitempty" help:"HTTP methods; none: all"`
	Paths      []string `key:"paths" json:"paths,omitempty" help:"globs of paths; none: all"`
	TLS        string   `key:"tls" json:"tls,omitempty" help:"pass, raw, intercept or upgrade"`
	Credential string   `key:"credential" json:"credential,omitempty" help:"the name of one of the sandbox operator's credentials"`
}

// tlsPass is the meaning of an empty TLS.
const tlsPass = "pass"

// ways are the values of a rule's TLS.
var ways = map[string]sandboxv1.NetworkTls{
	tlsPass:     sandboxv1.NetworkTls_NETWORK_TLS_PASS,
	"raw":       sandboxv1.NetworkTls_NETWORK_TLS_RAW,
	"intercept": sandboxv1.NetworkTls_NETWORK_TLS_INTERCEPT,
	"upgrade":   sandboxv1.NetworkTls_NETWORK_TLS_UPGRADE,
}

func (s Spec) checkNetwork() error {
	for i, r := range s.Network {
		if _, known := ways[cmp.Or(r.TLS, tlsPass)]; !known {
			return fmt.Errorf("network rule %d: tls %q is not one of pass, raw, intercept, upgrade", i+1, r.TLS)
		}
		if r.Host == "" {
			return fmt.Errorf("network rule %d: host is missing", i+1)
		}
		if strings.ContainsFunc(r.Host, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
			return fmt.Errorf("network rule %d: host %q has white space or a control character in it", i+1, r.Host)
		}
	}
	return nil
}

// NetworkPolicy returns the policy to request from the sandbox. Without rules it
// requests the removal of the network of the session's earlier agent.
func (s Spec) NetworkPolicy() *sandboxv1.NetworkPolicy {
	p := &sandboxv1.NetworkPolicy{}
	for _, r := range s.Network {
		p.Rules = append(p.Rules, &sandboxv1.NetworkRule{
			Name: r.Name, Host: r.Host, Ports: r.Ports, Methods: r.Methods, Paths: r.Paths, Tls: ways[cmp.Or(r.TLS, tlsPass)], Credential: r.Credential,
		})
	}
	return p
}

func (s Spec) networkProto() []*sessionv1.AgentNetworkRule {
	var all []*sessionv1.AgentNetworkRule
	for _, r := range s.Network {
		all = append(all, &sessionv1.AgentNetworkRule{
			Name: r.Name, Host: r.Host, Ports: r.Ports, Methods: r.Methods, Paths: r.Paths, Tls: cmp.Or(r.TLS, tlsPass), Credential: r.Credential,
		})
	}
	return all
}

// networkTool is the tool whose commands use the network.
const networkTool = "Bash"

// maxTold is how many rules of the network the model is told.
const maxTold = 20

// DescribeNetwork returns what a tool's description says of the network, so that the model neither tries what is
// refused nor leaves out what is allowed.
func (s Spec) DescribeNetwork(tool string) string {
	switch {
	case tool != networkTool:
		return ""
	case len(s.Network) == 0:
		return "\n- There is no network: nothing can be downloaded."
	}
	var b strings.Builder
	b.WriteString("\n- The network reaches only what is listed here, through the proxy in the variables HTTP_PROXY and HTTPS_PROXY. Anything else is refused:")
	for i, r := range s.Network {
		if i == maxTold {
			fmt.Fprintf(&b, "\n  - and %d more", len(s.Network)-maxTold)
			break
		}
		b.WriteString("\n  - " + r.told())
	}
	return b.String()
}

// told returns what a rule allows, for the model. It does not name the credential.
func (r NetworkRule) told() string {
	text := r.Host
	if r.Host == "*" {
		text = "every host"
	}
	if len(r.Ports) > 0 {
		text += ", ports " + strings.Join(texts(r.Ports), ", ")
	}
	if len(r.Methods) > 0 {
		text += ", methods " + strings.Join(r.Methods, ", ")
	}
	if len(r.Paths) > 0 {
		text += ", paths " + strings.Join(r.Paths, ", ")
	}
	if r.Credential != "" {
		text += ", with a credential that the proxy adds"
	}
	return text
}

func texts(ports []int32) []string {
	all := make([]string, len(ports))
	for i, p := range ports {
		all[i] = strconv.Itoa(int(p))
	}
	return all
}
