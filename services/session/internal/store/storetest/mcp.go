package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func mcpServer(name, key string) *commonv1.McpServer {
	return &commonv1.McpServer{Name: name, Transport: &commonv1.McpServer_Http{Http: &commonv1.McpHttp{
		Url: "https://mcp.example.com", Headers: map[string]string{"X-Key": key},
	}}}
}

func testMCPServers(t *testing.T, open func(t *testing.T) store.Store) {
	ann, bob, other := store.Owner{Tenant: "acme", User: "ann"}, store.Owner{Tenant: "acme", User: "bob"}, store.Owner{Tenant: "globex", User: "ann"}
	set := func(f *fixture, o store.Owner, name, key string) store.MCPServer {
		f.Helper()
		s, err := f.SetMCPServer(f.ctx(), o, mcpServer(name, key), store.Request{})
		f.must(err)
		return s
	}
	has := func(f *fixture, o store.Owner, want ...*commonv1.McpServer) {
		f.Helper()
		all, err := f.UserMCPServers(f.ctx(), o)
		f.must(err)
		var got []*commonv1.McpServer
		for _, s := range all {
			got = append(got, s.McpServer)
		}
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			f.Errorf("%v has\n%s", o, d)
		}
	}

	t.Run("a user's servers are the user's alone, in the order of names", func(t *testing.T) {
		f := newFixture(t, open)
		set(f, ann, "b", "2")
		set(f, ann, "a", "0")
		if s := set(f, ann, "a", "1"); time.Since(s.Time).Abs() > time.Minute {
			t.Errorf("set at %v", s.Time)
		}
		set(f, bob, "a", "bob's")
		has(f, ann, mcpServer("a", "1"), mcpServer("b", "2"))
		has(f, bob, mcpServer("a", "bob's"))
		has(f, other)
		f.must(f.DeleteMCPServer(f.ctx(), ann, "a", store.Request{}))
		for _, o := range []store.Owner{ann, other} {
			if err := f.DeleteMCPServer(f.ctx(), o, "a", store.Request{}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("deleting what is not there: %v", err)
			}
		}
		has(f, ann, mcpServer("b", "2"))
		has(f, bob, mcpServer("a", "bob's"))
	})

	t.Run("a request is made once", func(t *testing.T) {
		f := newFixture(t, open)
		r := store.Request{Method: "SetUserMcpServer", Parent: "users/ann", ID: "r", Digest: []byte("one"), KeepUntil: time.Now().Add(time.Hour)}
		_, err := f.SetMCPServer(f.ctx(), ann, mcpServer("a", "1"), r)
		f.must(err)
		set(f, ann, "a", "2")
		again, err := f.SetMCPServer(f.ctx(), ann, mcpServer("a", "1"), r)
		f.must(err)
		if !proto.Equal(again.McpServer, mcpServer("a", "2")) {
			t.Errorf("repeated: %v", again.McpServer)
		}
		r.Digest = []byte("two")
		if _, err := f.SetMCPServer(f.ctx(), ann, mcpServer("a", "3"), r); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("with another body: %v", err)
		}
	})

	t.Run("there are not more than there may be", func(t *testing.T) {
		f := newFixture(t, open)
		large := strings.Repeat("x", store.MaxMCPServerBytes-200)
		set(f, ann, "a", large)
		set(f, ann, "a", large) // replaces itself
		if _, err := f.SetMCPServer(f.ctx(), ann, mcpServer("b", large), store.Request{}); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("more bytes: %v", err)
		}
		for i := range store.MaxMCPServers {
			set(f, bob, fmt.Sprintf("s%d", i), "x")
		}
		if _, err := f.SetMCPServer(f.ctx(), bob, mcpServer("one-more", "x"), store.Request{}); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
	})

	t.Run("a session shows its servers without secrets, and they go with it", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.MCPServers = []*commonv1.McpServer{mcpServer("a", "hush"), mcpServer("b", "${KEY}")}
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		f.create(key("s2"))
		kept := func(k store.Key, want ...*commonv1.McpServer) {
			t.Helper()
			got, err := f.SessionMCPServers(f.ctx(), k)
			f.must(err)
			if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
				t.Errorf("%v has\n%s", k, d)
			}
		}
		kept(n.Key, n.MCPServers...)
		kept(key("s2"))
		if d := cmp.Diff([]*commonv1.McpServer{mcpServer("a", "(hidden)"), mcpServer("b", "${KEY}")}, f.session(n.Key).McpServers, protocmp.Transform()); d != "" {
			t.Errorf("shown:\n%s", d)
		}
		_, err = f.DeleteSession(f.ctx(), n.Key, store.Request{})
		f.must(err)
		kept(n.Key)
	})
}
