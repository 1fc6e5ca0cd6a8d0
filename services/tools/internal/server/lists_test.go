package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// heavyEntries is how many tools and operations there are; each has 300 KB, and the first operation 8 MB.
const heavyEntries = 30

var heavyText = strings.Repeat("word ", 60<<10)

// heavyStore is a store with operations alone, the newest first.
type heavyStore struct{ store.Store }

func (heavyStore) ListOperations(_ context.Context, p store.OperationPage) ([]store.Operation, error) {
	last := heavyEntries
	if p.Before != nil {
		_, _ = fmt.Sscanf(p.Before.ID, "o%d", &last)
	}
	var all []store.Operation
	for n := last - 1; n >= 0 && len(all) < p.Limit; n-- {
		text := heavyText
		if n == 0 {
			text = strings.Repeat(text, 27)
		}
		content, err := proto.Marshal(&toolsv1.CallResult{Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}}})
		if err != nil {
			return nil, err
		}
		at := time.Unix(int64(n), 0)
		all = append(all, store.Operation{OperationKey: store.OperationKey{ID: fmt.Sprintf("o%d", n)}, CreateTime: at, EndTime: at, Content: content})
	}
	return all, nil
}

func (heavyStore) ListProfiles(_ context.Context, _, after string, limit int) (all []store.Profile, _ error) {
	for n := range heavyEntries {
		if id := fmt.Sprintf("p%03d", n); id > after && len(all) < limit {
			all = append(all, store.Profile{ID: id, Description: heavyText})
		}
	}
	return all, nil
}

func (heavyStore) ListGrants(_ context.Context, p store.GrantPage) (all []store.Grant, _ error) {
	last := heavyEntries
	if p.Before != nil {
		_, _ = fmt.Sscanf(p.Before.ID, "g%d", &last)
	}
	for n := last - 1; n >= 0 && len(all) < p.Limit; n-- {
		all = append(all, store.Grant{ID: fmt.Sprintf("g%d", n), Rule: heavyText, CreateTime: time.Unix(int64(n), 0)})
	}
	return all, nil
}

func heavyTools(t *testing.T) *registry.Registry {
	t.Helper()
	all := make([]*tool.Tool, heavyEntries)
	for n := range all {
		var err error
		if all[n], err = tool.New(tool.Spec{Name: fmt.Sprintf("T%d", n), Description: heavyText, InputSchema: `{"type":"object"}`}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := registry.New(all...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listed is a page as a client receives it.
type listed struct {
	proto.Message
	names []string
	next  string
}

func names[M interface{ GetName() string }](entries []M) (all []string) {
	for _, e := range entries {
		all = append(all, e.GetName())
	}
	return all
}

func TestPagesOfEveryListEndAtASize(t *testing.T) {
	ctx := principal.With(t.Context(), principal.Default())
	registry := heavyTools(t)
	tools, operations := NewTools(registry), NewOperations(heavyStore{}, nil)
	calls := NewCalls(&call.Engine{Config: call.Config{Tools: registry, Servers: mcp.NewPool(mcp.Config{})}}, nil, Known{})
	paged := map[protoreflect.FullName]func(token string) (listed, error){
		"ToolService.ListTools": func(token string) (listed, error) {
			r, err := tools.ListTools(ctx, &toolsv1.ListToolsRequest{PageSize: 1000, PageToken: token})
			return listed{r, names(r.GetTools()), r.GetNextPageToken()}, err
		},
		"CallService.ListSessionTools": func(token string) (listed, error) {
			r, err := calls.ListSessionTools(ctx, &toolsv1.ListSessionToolsRequest{PageToken: token, AllowedTools: registry.Names()})
			return listed{r, names(r.GetTools()), r.GetNextPageToken()}, err
		},
		"OperationService.ListOperations": func(token string) (listed, error) {
			r, err := operations.ListOperations(ctx, &toolsv1.ListOperationsRequest{PageSize: 1000, PageToken: token})
			return listed{r, names(r.GetOperations()), r.GetNextPageToken()}, err
		},
	}
	profiles, grants := NewProfiles(heavyStore{}, policy.New(policy.Config{}), registry), NewGrants(heavyStore{})
	paged["ProfileService.ListProfiles"] = func(token string) (listed, error) {
		r, err := profiles.ListProfiles(ctx, &toolsv1.ListProfilesRequest{PageSize: 1000, PageToken: token})
		return listed{r, names(r.GetProfiles()), r.GetNextPageToken()}, err
	}
	paged["GrantService.ListGrants"] = func(token string) (listed, error) {
		r, err := grants.ListGrants(ctx, &toolsv1.ListGrantsRequest{PageSize: 1000, PageToken: token})
		return listed{r, names(r.GetGrants()), r.GetNextPageToken()}, err
	}
	for _, rpc := range lists() {
		read := paged[rpc]
		if read == nil {
			t.Errorf("%s is not tested: add it here", rpc)
			continue
		}
		seen, token := map[string]bool{}, ""
		for {
			p, err := read(token)
			if err != nil {
				t.Fatalf("%s: %v", rpc, err)
			}
			if proto.Size(p) > page.MaxBytes+1000 || len(p.names) == 0 {
				t.Fatalf("%s: a page has %d entries and %d bytes", rpc, len(p.names), proto.Size(p))
			}
			for _, name := range p.names {
				seen[name] = true
			}
			if token = p.next; token == "" {
				break
			}
		}
		if len(seen) != heavyEntries {
			t.Errorf("%s: %d entries, want %d", rpc, len(seen), heavyEntries)
		}
	}
}

// lists are the RPCs of the tools service that list.
func lists() (all []protoreflect.FullName) {
	protoregistry.GlobalFiles.RangeFilesByPackage("fairlead.tools.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				if name := service.Methods().Get(j).Name(); strings.HasPrefix(string(name), "List") || strings.HasPrefix(string(name), "Search") {
					all = append(all, protoreflect.FullName(service.Name()).Append(name))
				}
			}
		}
		return true
	})
	return all
}

func TestAnOperationThatIsLargerThanAPageIsListedShortened(t *testing.T) {
	ctx := principal.With(t.Context(), principal.Default())
	r, err := NewOperations(heavyStore{}, nil).ListOperations(ctx, &toolsv1.ListOperationsRequest{
		PageToken: page.Encode("ListOperations\x00default\x00", store.OperationCursor{CreateTime: time.Unix(2, 0).UTC(), ID: "o2"}),
	})
	if err != nil || len(r.GetOperations()) != 2 {
		t.Fatalf("%v, %v", names(r.GetOperations()), err)
	}
	for i, o := range r.GetOperations() {
		if large := i == 1; o.GetShortened() != large || (len(o.GetContent()) == 0) != large {
			t.Errorf("%s is shortened: %t, with %d pieces", o.GetName(), o.GetShortened(), len(o.GetContent()))
		}
	}
}
