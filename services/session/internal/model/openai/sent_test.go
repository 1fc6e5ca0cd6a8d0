package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// received is a request as a server gets it.
type received struct {
	Method, Path string
	Header       http.Header
	Body         any
}

// receive starts a server that keeps the last request.
func receive(t *testing.T) (url string, last *received) {
	last = &received{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header.Clone()
		h.Del("Content-Length")
		*last = received{Method: r.Method, Path: r.URL.EscapedPath(), Header: h}
		if err := json.Unmarshal(body, &last.Body); err != nil {
			t.Errorf("the body is no JSON: %v", err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/below/v1", last
}

// bySDK returns options of the vendor's client that let it send as we do.
func bySDK(url, key string) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(url), option.WithMaxRetries(0), option.WithHeader("User-Agent", "fairlead"), option.WithHeader("Accept", "text/event-stream"),
		option.WithJSONSet("stream", true),
	}
	for _, name := range []string{"Lang", "Package-Version", "Os", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+name)) // they describe the machine
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return opts
}

func wished() model.Request {
	half := 0.5
	r := model.Request{Model: "m", System: "s <&>", Temperature: &half, TopP: &half, MaxOutputTokens: 77, ThinkingTokens: 5}
	r.Tools = []model.Tool{{Name: "T", InputSchema: json.RawMessage(`{"type":"object"}`), Strict: true}}
	r.Wishes.Effort = "max"
	r.Wishes.Format.Schema, r.Wishes.Format.Description, r.Wishes.Format.Strict = json.RawMessage(`{"type":"object"}`), "d", true
	r.Wishes.ToolChoice.Mode, r.Wishes.ToolChoice.Name, r.Wishes.ToolChoice.Single = model.ToolNamed, "T", true
	return r
}

// The vendor's SDK is too large for the program, so tests compare what both send.
func TestRequestsAreSentAsTheSDKSendsThem(t *testing.T) {
	for _, key := range []string{"", "sk-1"} {
		for api, ask := range map[string]func(context.Context, []option.RequestOption, model.Request) error{
			Chat: func(ctx context.Context, opts []option.RequestOption, r model.Request) error {
				service := sdk.NewChatCompletionService(opts...)
				var raw *http.Response
				_, err := service.New(ctx, sdk.ChatCompletionNewParams{
					Model: r.Model, Temperature: sdk.Float(0.5), TopP: sdk.Float(0.5), MaxCompletionTokens: sdk.Int(77), ReasoningEffort: shared.ReasoningEffortHigh,
					StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}, ParallelToolCalls: sdk.Bool(false),
					Messages:   []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(r.System)},
					ToolChoice: sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: "T"}),
					Tools: []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
						Name: "T", Parameters: shared.FunctionParameters{"type": "object"}, Strict: sdk.Bool(true),
					})},
					ResponseFormat: sdk.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
						JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Description: sdk.String("d"), Strict: sdk.Bool(true), Schema: r.Wishes.Format.Schema},
					}},
				}, append(opts, option.WithResponseBodyInto(&raw))...)
				return err
			},
			Responses: func(ctx context.Context, opts []option.RequestOption, r model.Request) error {
				service := responses.NewResponseService(opts...)
				var raw *http.Response
				_, err := service.New(ctx, responses.ResponseNewParams{
					Model: r.Model, Store: param.NewOpt(false), Temperature: param.NewOpt(0.5), TopP: param.NewOpt(0.5), MaxOutputTokens: param.NewOpt(int64(77)),
					Instructions: param.NewOpt(r.System), ParallelToolCalls: param.NewOpt(false),
					Include:    []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
					Reasoning:  shared.ReasoningParam{Effort: shared.ReasoningEffortHigh, Summary: shared.ReasoningSummaryAuto},
					Input:      responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{}},
					ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "T"}},
					Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
						Name: "T", Parameters: map[string]any{"type": "object"}, Strict: param.NewOpt(true),
					}}},
					Text: responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigUnionParam{OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{
						Name: "answer", Description: param.NewOpt("d"), Strict: param.NewOpt(true), Schema: map[string]any{"type": "object"},
					}}},
				}, append(opts, option.WithResponseBodyInto(&raw))...)
				return err
			},
		} {
			t.Run(api+" with the key "+key, func(t *testing.T) {
				url, last := receive(t)
				t.Setenv("OPENAI_API_KEY", "")
				if err := ask(t.Context(), bySDK(url, key), wished()); err != nil {
					t.Fatal(err)
				}
				want := *last
				m := New(Config{BaseURL: url, Key: key, API: api, MaxOutputTokens: 100})
				if _, err := m.Stream(t.Context(), wished(), func(model.Delta) error { return nil }); err == nil {
					t.Error("an empty stream is an answer")
				}
				if diff := cmp.Diff(want, *last); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
