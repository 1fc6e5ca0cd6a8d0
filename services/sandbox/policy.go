//go:build linux

package sandbox

import sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"

// NetworkPolicy returns the policy of workspaces that may reach all that the operator allows.
func (c Config) NetworkPolicy() *sandboxv1.NetworkPolicy {
	p := &sandboxv1.NetworkPolicy{}
	for _, r := range c.Egress.Ceiling {
		out := &sandboxv1.NetworkRule{Name: r.Name, Host: r.Host, Methods: r.Methods, Paths: r.Paths}
		for _, port := range r.Ports {
			out.Ports = append(out.Ports, int32(port))
		}
		if len(r.Methods)+len(r.Paths) > 0 { // which TLS hides otherwise
			out.Tls = sandboxv1.NetworkTls_NETWORK_TLS_INTERCEPT
		}
		p.Rules = append(p.Rules, out)
	}
	return p
}
