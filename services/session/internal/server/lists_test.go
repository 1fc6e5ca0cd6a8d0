package server

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	models "github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// heavy is a store whose lists have entries in the order of their ids, which count from 001. Every tenth has about 300 KB,
// and every event.
type heavy struct {
	store.Store
	most int // entries that one read returned
}

const (
	heavyEntries = 60
	heavyBytes   = 300 << 10
)

var heavyText = strings.Repeat("word ", heavyBytes/5)

// weight is the text of the entry of an id: a page of three heavy entries is full, and reading the others costs little.
func weight(id string) string {
	if n, _ := strconv.Atoi(id); n%10 == 0 {
		return heavyText
	}
	return "word"
}

// rows makes the entries behind an id.
func rows[M any](h *heavy, after string, limit int, entry func(id string) M) (all []M, _ error) {
	last, _ := strconv.Atoi(strings.TrimLeft(after, "0"))
	for n := last + 1; n <= heavyEntries && len(all) < limit; n++ {
		all = append(all, entry(fmt.Sprintf("%03d", n)))
	}
	h.most = max(h.most, len(all))
	return all, nil
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (h *heavy) GetSession(context.Context, store.Key) (*sessionv1.Session, error) {
	return &sessionv1.Session{Name: "sessions/s", Head: fmt.Sprintf("sessions/s/messages/%03d", heavyEntries)}, nil
}

func (h *heavy) ListSessions(_ context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	return rows(h, p.AfterID, p.Limit, func(id string) *sessionv1.Session {
		return &sessionv1.Session{Name: "sessions/" + id, CreateTime: timestamppb.New(start), Labels: map[string]string{"x": weight(id)}}
	})
}

func (h *heavy) ListPending(_ context.Context, p store.PendingPage) ([]*sessionv1.PendingApproval, error) {
	return rows(h, p.AfterCall, p.Limit, func(id string) *sessionv1.PendingApproval {
		return &sessionv1.PendingApproval{Session: "sessions/s", CallId: id, CreateTime: timestamppb.New(start), Message: weight(id)}
	})
}

func (h *heavy) ListTurns(_ context.Context, _ store.Key, after string, limit int) ([]*sessionv1.Turn, error) {
	return rows(h, after, limit, func(id string) *sessionv1.Turn {
		return &sessionv1.Turn{Name: "sessions/s/turns/" + id, FinalText: weight(id)}
	})
}

func (h *heavy) ListEvents(_ context.Context, _ store.Key, after int64, limit, bytes int) ([]*sessionv1.Event, error) {
	if bytes > 0 {
		limit = min(limit, max(1, bytes/(heavyBytes+100)))
	}
	return rows(h, strconv.FormatInt(after, 10), limit, func(id string) *sessionv1.Event {
		n, _ := strconv.ParseInt(id, 10, 64)
		return &sessionv1.Event{Seq: n, FirstSeq: n, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: heavyText}}}
	})
}

func heavyMessage(id string) *sessionv1.Message {
	content := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: weight(id)}}}
	return &sessionv1.Message{Name: "sessions/s/messages/" + id, CreateTime: timestamppb.New(start), Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: content}}}}
}

func (h *heavy) ListMessages(_ context.Context, _ store.Key, _, after string, limit int) ([]*sessionv1.Message, error) {
	return rows(h, after, limit, heavyMessage)
}

func (h *heavy) SearchMessages(_ context.Context, s store.MessageSearch) ([]*sessionv1.Message, error) {
	return rows(h, s.AfterMessage, s.Limit, heavyMessage)
}

func (h *heavy) ListSchedules(_ context.Context, _ store.Key, after string, limit int) ([]*sessionv1.Schedule, error) {
	return rows(h, after, limit, func(id string) *sessionv1.Schedule {
		return &sessionv1.Schedule{Name: "sessions/s/schedules/" + id, Text: weight(id)}
	})
}

func (h *heavy) UserMCPServers(context.Context, store.Owner) ([]store.MCPServer, error) {
	return nil, nil
}

func (h *heavy) SessionMCPServers(context.Context, store.Key) ([]*commonv1.McpServer, error) {
	return nil, nil
}

// GetAgentRevision returns an agent that has every heavy tool.
func (h *heavy) GetAgentRevision(context.Context, string, string, string) (store.AgentRevision, error) {
	var spec agent.Spec
	for n := range heavyEntries {
		spec.Tools = append(spec.Tools, fmt.Sprintf("%03d", n+1))
	}
	return store.AgentRevision{Spec: spec.Marshal()}, nil
}

// heavyTools is a tools service with heavy tools.
type heavyTools struct {
	toolsv1.UnimplementedToolServiceServer
	toolsv1.UnimplementedCallServiceServer
}

// ListSessionTools lists ten tools at a time.
func (h heavyTools) ListSessionTools(ctx context.Context, r *toolsv1.ListSessionToolsRequest) (*toolsv1.ListSessionToolsResponse, error) {
	page, err := h.ListTools(ctx, &toolsv1.ListToolsRequest{PageToken: r.PageToken})
	return &toolsv1.ListSessionToolsResponse{Tools: page.GetTools(), NextPageToken: page.GetNextPageToken()}, err
}

// ListTools returns ten tools at a time.
func (heavyTools) ListTools(_ context.Context, r *toolsv1.ListToolsRequest) (*toolsv1.ListToolsResponse, error) {
	tools, err := rows(&heavy{}, r.PageToken, 10, func(id string) *toolsv1.Tool {
		return &toolsv1.Tool{Name: "tools/" + id, Description: weight(id)}
	})
	resp := &toolsv1.ListToolsResponse{Tools: tools}
	if len(tools) == 10 {
		resp.NextPageToken = strings.TrimPrefix(tools[9].Name, "tools/")
	}
	return resp, err
}

func (h *heavy) ListCheckpoints(_ context.Context, _ store.Key, before int64, limit int) ([]*sessionv1.Checkpoint, error) {
	return rows(h, strconv.FormatInt(before, 10), limit, func(id string) *sessionv1.Checkpoint {
		n, _ := strconv.ParseInt(id, 10, 64)
		return &sessionv1.Checkpoint{Name: "sessions/s/checkpoints/" + id, Seq: n, Description: weight(id)}
	})
}

func (h *heavy) ListFeedback(_ context.Context, _ store.Key, before string, limit int) ([]*sessionv1.Feedback, error) {
	return rows(h, before, limit, func(id string) *sessionv1.Feedback {
		return &sessionv1.Feedback{Name: "sessions/s/feedback/" + id, Comment: weight(id)}
	})
}

func (h *heavy) ListTriggers(_ context.Context, p store.TriggerPage) ([]*sessionv1.Trigger, error) {
	return rows(h, p.After, p.Limit, func(id string) *sessionv1.Trigger {
		return &sessionv1.Trigger{Name: "triggers/" + id, Text: weight(id)}
	})
}

func (h *heavy) ListWebhooks(_ context.Context, _, after string, limit int) ([]*sessionv1.Webhook, error) {
	return rows(h, after, limit, func(id string) *sessionv1.Webhook {
		return &sessionv1.Webhook{Name: "webhooks/" + id, Url: weight(id)}
	})
}

func (h *heavy) ListDeliveries(_ context.Context, _, _, after string, limit int) ([]*sessionv1.Delivery, error) {
	return rows(h, after, limit, func(id string) *sessionv1.Delivery { return &sessionv1.Delivery{Id: id, LastError: weight(id)} })
}

func (h *heavy) ListTenants(_ context.Context, after string, limit int) ([]*sessionv1.Tenant, error) {
	return rows(h, after, limit, func(id string) *sessionv1.Tenant { return &sessionv1.Tenant{Name: "tenants/" + id, Title: weight(id)} })
}

func (h *heavy) ListUsers(_ context.Context, _, after string, limit int) ([]*sessionv1.User, error) {
	return rows(h, after, limit, func(id string) *sessionv1.User { return &sessionv1.User{Name: "users/" + id, Title: weight(id)} })
}

func (h *heavy) ListKeys(_ context.Context, p store.KeyPage) ([]*sessionv1.Key, error) {
	return rows(h, p.AfterID, p.Limit, func(id string) *sessionv1.Key { return &sessionv1.Key{Name: "keys/" + id, Title: weight(id)} })
}

// ListAgents lists no agents: the configuration's are heavy already.
func (h *heavy) ListAgents(_ context.Context, _, collection, after string, _ bool, limit int) ([]store.AgentRow, error) {
	if collection == "agents" {
		return nil, nil
	}
	if collection == "skills" {
		return rows(h, strings.TrimPrefix(after, "skills/s"), limit, func(id string) store.AgentRow {
			return store.AgentRow{AgentRevision: store.AgentRevision{Name: "skills/s" + id, Spec: heavySkill(id)}}
		})
	}
	if collection == "models" {
		return rows(h, strings.TrimPrefix(after, directory.OwnModelsFolder+"m"), limit, func(id string) store.AgentRow {
			spec, _ := protojson.Marshal(&sessionv1.ModelSpec{Target: "openai:gpt-5.5", Description: weight(id)})
			return store.AgentRow{AgentRevision: store.AgentRevision{Name: directory.OwnModelsFolder + "m" + id, Spec: spec}}
		})
	}
	return rows(h, strings.TrimPrefix(after, "environments/e"), limit, func(id string) store.AgentRow {
		spec, _ := json.Marshal(agent.Environment{Description: weight(id)})
		return store.AgentRow{AgentRevision: store.AgentRevision{Name: "environments/e" + id, Spec: spec}}
	})
}

func heavySkill(id string) []byte {
	spec, _ := json.Marshal(directory.SkillSpec{Description: weight(id)})
	return spec
}

// GetAgent finds any skill.
func (h *heavy) GetAgent(_ context.Context, _, name string, _ int32) (store.AgentRow, error) {
	return store.AgentRow{AgentRevision: store.AgentRevision{Name: name, Spec: heavySkill(path.Base(name)[1:])}}, nil
}

func (h *heavy) ListAgentVersions(_ context.Context, _, name string, before int32, limit int) ([]store.AgentRow, error) {
	after := ""
	if before > 0 {
		after = strconv.Itoa(heavyEntries + 1 - int(before))
	}
	return rows(h, after, limit, func(id string) store.AgentRow {
		n, _ := strconv.Atoi(id)
		if strings.HasPrefix(name, "skills/") {
			return store.AgentRow{AgentRevision: store.AgentRevision{Name: name, Spec: heavySkill(id)}, Version: int32(heavyEntries + 1 - n)}
		}
		spec := agent.Spec{Prompt: weight(id)}
		return store.AgentRow{AgentRevision: store.AgentRevision{Name: name, Spec: spec.Marshal()}, Version: int32(heavyEntries + 1 - n)}
	})
}

func (h *heavy) ListAudit(_ context.Context, p store.AuditPage) ([]*sessionv1.AuditEntry, error) {
	return rows(h, strconv.FormatInt(p.AfterSeq, 10), p.Limit, func(id string) *sessionv1.AuditEntry {
		n, _ := strconv.ParseInt(id, 10, 64)
		return &sessionv1.AuditEntry{Seq: n, Resource: weight(id)}
	})
}

// heavyAgents are as many agents, of the same sizes.
func heavyAgents(t *testing.T) *agent.Set {
	t.Helper()
	specs := map[string]agent.Spec{}
	for n := 1; n <= heavyEntries; n++ {
		id := fmt.Sprintf("%03d", n)
		specs["a"+id] = agent.Spec{Prompt: "p", Greeting: weight(id), Profile: "full"}
	}
	set, err := agent.NewSet(specs, "a001")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// paged are requests to RPCs that list in pages.
var paged = map[protoreflect.FullName]proto.Message{
	"SessionService.ListSessions":             &sessionv1.ListSessionsRequest{},
	"SessionService.ListApprovals":            &sessionv1.ListApprovalsRequest{},
	"SessionService.ListTurns":                &sessionv1.ListTurnsRequest{Parent: "sessions/s"},
	"SessionService.ListEvents":               &sessionv1.ListEventsRequest{Parent: "sessions/s"},
	"SessionService.ListMessages":             &sessionv1.ListMessagesRequest{Parent: "sessions/s"},
	"SessionService.SearchMessages":           &sessionv1.SearchMessagesRequest{Query: "word"},
	"AgentService.ListAgents":                 &sessionv1.ListAgentsRequest{},
	"AgentService.ListAgentVersions":          &sessionv1.ListAgentVersionsRequest{Parent: "agents/a001"},
	"ModelService.ListModels":                 &sessionv1.ListModelsRequest{},
	"EnvironmentService.ListEnvironments":     &sessionv1.ListEnvironmentsRequest{},
	"SkillService.ListSkills":                 &sessionv1.ListSkillsRequest{},
	"SkillService.ListSkillVersions":          &sessionv1.ListSkillVersionsRequest{Parent: "skills/s001"},
	"CheckpointService.ListCheckpoints":       &sessionv1.ListCheckpointsRequest{Parent: "sessions/s"},
	"FeedbackService.ListFeedback":            &sessionv1.ListFeedbackRequest{Parent: "sessions/s"},
	"ScheduleService.ListSchedules":           &sessionv1.ListSchedulesRequest{Parent: "sessions/s"},
	"TriggerService.ListTriggers":             &sessionv1.ListTriggersRequest{},
	"WebhookService.ListWebhooks":             &sessionv1.ListWebhooksRequest{},
	"FileService.ListFiles":                   &sessionv1.ListFilesRequest{},
	"SessionFileService.ListSessionFiles":     &sessionv1.ListSessionFilesRequest{Parent: "sessions/s"},
	"SessionFileService.ListSessionArtifacts": &sessionv1.ListSessionArtifactsRequest{Parent: "sessions/s"},
	"AuditService.ListAuditEntries":           &sessionv1.ListAuditEntriesRequest{},
	"IdentityService.ListTenants":             &sessionv1.ListTenantsRequest{},
	"IdentityService.ListUsers":               &sessionv1.ListUsersRequest{},
	"IdentityService.ListKeys":                &sessionv1.ListKeysRequest{},
	"SessionToolService.ListSessionTools":     &sessionv1.ListSessionToolsRequest{Parent: "sessions/s"},
	"WebhookService.ListDeliveries":           &sessionv1.ListDeliveriesRequest{Parent: "webhooks/w"},
}

// bounded are lists that stay small by what they list, with the reason.
var bounded = map[protoreflect.FullName]string{
	"UserService.ListUserVariables":      "names and times; 1000 of them weigh less than 200 KB",
	"McpService.ListUserMcpServers":      "256 KiB of one user",
	"BudgetService.ListBudgets":          "at most one for the tenant, the user and the session",
	"WorkService.ListWork":               "the gateway pages through it by session",
	"NodeService.ListNodes":              "the nodes of the configuration",
	"RepositoryService.ListRepositories": "the repositories of one workspace",
}

// lists are the RPCs of the session service that list.
func lists(t *testing.T) []protoreflect.FullName {
	t.Helper()
	var all []protoreflect.FullName
	protoregistry.GlobalFiles.RangeFilesByPackage("fairlead.session.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				if name := methods.Get(j).Name(); strings.HasPrefix(string(name), "List") || strings.HasPrefix(string(name), "Search") {
					all = append(all, protoreflect.FullName(f.Services().Get(i).Name()).Append(name))
				}
			}
		}
		return true
	})
	if len(all) < len(paged) {
		t.Fatalf("found only %s", all)
	}
	return all
}

func TestPagesOfEveryListEndAtASize(t *testing.T) {
	ctx := principal.With(t.Context(), principal.Default())
	for _, name := range lists(t) {
		request, ok := paged[name]
		if !ok {
			if bounded[name] == "" {
				t.Errorf("%s is not tested: add it to paged, or to bounded with a reason", name)
			}
			continue
		}
		t.Run(string(name), func(t *testing.T) {
			h := &heavy{}
			tools := rpctest.Dial(t, func(r grpc.ServiceRegistrar) {
				toolsv1.RegisterToolServiceServer(r, heavyTools{})
				toolsv1.RegisterCallServiceServer(r, heavyTools{})
			})
			handlers := handlers{}
			New(Config{
				Directory: directory.New(directory.Config{
					Store: h, Models: &models.Catalog{}, Agents: heavyAgents(t), Skills: &skill.Library{}, Missing: func(string) []string { return nil },
					Tools: remote.NewTools(tools),
				}),
				Store: h, UserFiles: UserFiles{Files: &blob.Blobs{}}, Peers: Peers{Sandbox: heavySandbox{h: h}, Workspaces: &placement.Workspaces{Store: h}},
			}).Register(handlers)
			read := func(size int32, token string) (proto.Message, error) {
				return handlers.list(ctx, name, request, size, token)
			}
			entries := map[string]bool{}
			for token, first := "", true; token != "" || first; first = false {
				answer, err := read(1000, token)
				if err != nil {
					t.Fatal(err)
				}
				size, count := readPage(answer, entries)
				if size > page.MaxBytes+1000 || count == 0 {
					t.Fatalf("a page has %d entries and %d bytes", count, size)
				}
				token = answer.ProtoReflect().Get(answer.ProtoReflect().Descriptor().Fields().ByName("next_page_token")).String()
			}
			// Agents are the built-in ones, too.
			if len(entries) < heavyEntries || len(entries) > heavyEntries+5 || h.most > 51 {
				t.Errorf("read %d entries, and %d at one time", len(entries), h.most)
			}
			if answer, err := read(2, ""); err != nil {
				t.Error(err)
			} else if _, count := readPage(answer, map[string]bool{}); count != 2 {
				t.Errorf("a page of 2 has %d entries", count)
			}
		})
	}
}

// handlers are those of the registered RPCs.
type handlers map[protoreflect.FullName]func(ctx context.Context, request proto.Message) (any, error)

// RegisterService implements grpc.ServiceRegistrar.
func (h handlers) RegisterService(d *grpc.ServiceDesc, impl any) {
	for _, m := range d.Methods {
		name := protoreflect.FullName(protoreflect.FullName(d.ServiceName).Name()).Append(protoreflect.Name(m.MethodName))
		h[name] = func(ctx context.Context, request proto.Message) (any, error) {
			decode := func(into any) error {
				proto.Merge(into.(proto.Message), request)
				return nil
			}
			return m.Handler(impl, ctx, decode, nil)
		}
	}
}

// list calls an RPC for a page.
func (h handlers) list(ctx context.Context, name protoreflect.FullName, request proto.Message, size int32, token string) (proto.Message, error) {
	request = proto.Clone(request)
	fields := request.ProtoReflect().Descriptor().Fields()
	request.ProtoReflect().Set(fields.ByName("page_size"), protoreflect.ValueOfInt32(size))
	request.ProtoReflect().Set(fields.ByName("page_token"), protoreflect.ValueOfString(token))
	answer, err := h[name](ctx, request)
	if err != nil {
		return nil, err
	}
	return answer.(proto.Message), nil
}

// readPage returns the size of a page and the number of its entries, and adds them to all.
func readPage(answer proto.Message, all map[string]bool) (size, count int) {
	m := answer.ProtoReflect()
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.IsList() {
			count = v.List().Len()
			for i := range count {
				b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(v.List().Get(i).Message().Interface())
				all[string(b[:min(len(b), 200)])] = true
			}
		}
		return true
	})
	return proto.Size(answer), count
}
