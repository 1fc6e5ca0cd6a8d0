package rpc_test

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// mailbox has an open RPC, and keeps the audit log.
type mailbox struct {
	*part

	mu      sync.Mutex
	audited []principal.Principal // as the log knows the caller; zero: it was not identified
	methods []string
}

func (m *mailbox) Audit(ctx context.Context, c rpc.AuditedCall) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, _ := rpc.Identified(ctx)
	m.audited, m.methods = append(m.audited, p), append(m.methods, c.Method)
	return nil
}

func (m *mailbox) last(t *testing.T) (string, principal.Principal) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.methods) == 0 {
		t.Fatal("nothing is in the audit log")
	}
	return m.methods[len(m.methods)-1], m.audited[len(m.audited)-1]
}

func TestAnOpenRPCNeedsNoCredentialAndHasNoPrincipal(t *testing.T) {
	m := &mailbox{part: &part{name: "a", events: &diary{}}}
	anonymous, right := false, true
	m.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		_, known := principal.From(ctx)
		if anonymous = !known; right {
			rpc.Identify(ctx, "acme", "triggers/t")
		}
		return in, nil
	}
	r := serve(t, everywhere(), m)
	deliver := func(ctx context.Context, cc grpc.ClientConnInterface) error {
		anonymous = false
		return cc.Invoke(ctx, openMethod, newNote("x"), dynamicpb.NewMessage(note))
	}
	with := func(name, value string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), name, value)
	}
	for name, call := range map[string]func() error{
		"a client without a credential":     func() error { return deliver(t.Context(), r.dial(t, "public")) },
		"a client with an unknown key":      func() error { return deliver(with("authorization", "Bearer fl_none"), r.dial(t, "public")) },
		"a client with another's scheme":    func() error { return deliver(with("authorization", "Basic YTpi"), r.dial(t, "public")) },
		"a peer":                            func() error { return deliver(t.Context(), r.local.Conn) },
		"a peer whose context has a caller": func() error { return deliver(principal.With(t.Context(), principal.Default()), r.local.Conn) },
	} {
		if err := call(); err != nil || !anonymous {
			t.Errorf("%s: %v; without a principal: %v", name, err, anonymous)
		}
		if method, who := m.last(t); method != openMethod || who.Tenant != "acme" || who.Credential != "triggers/t" || who.User != "" || who.Role != principal.RoleNone {
			t.Errorf("%s: the log has %s of %+v", name, method, who)
		}
	}
	right = false
	if err := deliver(t.Context(), r.dial(t, "public")); err != nil {
		t.Fatal(err)
	}
	if _, who := m.last(t); who.Tenant != "" {
		t.Errorf("a call whose secret is wrong is in the log of %s", who.Tenant)
	}
	stranger, err := rpc.Dial(r.at["peer"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if err := deliver(t.Context(), stranger); apierr.Code(err) != codes.Unauthenticated {
		t.Errorf("the peer face without an internal token: %v", err)
	}
	if _, err := take(t.Context(), r.local.Conn, newNote("x")); err == nil {
		t.Error("another RPC takes a call without a principal")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
