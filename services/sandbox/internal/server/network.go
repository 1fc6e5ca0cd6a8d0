package server

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// ways are the TLS modes of rules.
var ways = map[sandboxv1.NetworkTls]string{
	sandboxv1.NetworkTls_NETWORK_TLS_UNSPECIFIED: "",
	sandboxv1.NetworkTls_NETWORK_TLS_PASS:        egress.Pass,
	sandboxv1.NetworkTls_NETWORK_TLS_RAW:         egress.Raw,
	sandboxv1.NetworkTls_NETWORK_TLS_INTERCEPT:   egress.Intercept,
	sandboxv1.NetworkTls_NETWORK_TLS_UPGRADE:     egress.Upgrade,
}

// policy checks a workspace's network and returns the form that is stored.
func (s *Server) policy(p *sandboxv1.NetworkPolicy) (string, error) {
	rules := make([]egress.Rule, 0, len(p.GetRules()))
	for _, r := range p.GetRules() {
		rule := egress.Rule{
			Name: r.GetName(), Host: r.GetHost(), Methods: r.GetMethods(), Paths: r.GetPaths(), TLS: ways[r.GetTls()], Credential: r.GetCredential(),
		}
		for _, port := range r.GetPorts() {
			rule.Ports = append(rule.Ports, int(port))
		}
		rules = append(rules, rule)
	}
	return s.info.Network.Encode(rules)
}

// outcomes maps the outcomes of requests and tunnels.
var outcomes = map[egress.Outcome]sandboxv1.NetworkOutcome{
	egress.Done:           sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE,
	egress.Denied:         sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DENIED,
	egress.RefusedAddress: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_REFUSED_ADDRESS,
	egress.BadRequest:     sandboxv1.NetworkOutcome_NETWORK_OUTCOME_BAD_REQUEST,
	egress.Failed:         sandboxv1.NetworkOutcome_NETWORK_OUTCOME_FAILED,
	egress.Limited:        sandboxv1.NetworkOutcome_NETWORK_OUTCOME_LIMITED,
	egress.Aborted:        sandboxv1.NetworkOutcome_NETWORK_OUTCOME_ABORTED,
}

func uses(all []box.Use) []*sandboxv1.NetworkUse {
	told := make([]*sandboxv1.NetworkUse, 0, len(all))
	for _, u := range all {
		told = append(told, &sandboxv1.NetworkUse{
			Host: strings.ToValidUTF8(u.Host, "\uFFFD"), Port: int32(u.Port), Rule: u.Rule, Credential: u.Credential,
			Outcome: outcomes[egress.Outcome(u.Outcome)], Message: plain(u.Message),
			Connections: u.Connections, SentBytes: u.Sent, ReceivedBytes: u.Received, Duration: durationpb.New(u.Duration),
			StartTime: moment(u.Started),
		})
	}
	return told
}

// moment returns a time, or nil if it is unknown.
func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
