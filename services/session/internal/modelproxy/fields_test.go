package modelproxy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/fairlead/fairlead/services/session/internal/modelproxy/chat"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/messages"
	wire "github.com/fairlead/fairlead/services/session/internal/modelproxy/responses"
)

const (
	translated = "" // the request to the model differs with the field
	// ignored is the field's name on the page of the fields that change no answer.
	ignored = "ignored"
)

// part is a part of a request, with the fields that it has in the vendor's SDK.
type part struct {
	decode func([]byte) (*dialog.Request, error)
	sdk    []any
	form   string // of the request, with %s for the field
	// fields have an example as JSON, and what becomes of it: translated, ignored, or the name in the refusal.
	fields map[string][2]string
}

func parts() map[string]part {
	const (
		hi     = `{"role":"user","content":"hi"}`
		msgs   = `{"model":"m","max_tokens":9,"messages":[` + hi + `]%s}`
		cc     = `{"model":"m","messages":[` + hi + `]%s}`
		resp   = `{"model":"m","input":"hi"%s}`
		called = `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	)
	// need are fields that every request of its form has.
	need := [2]string{"", "given"}
	tools := [2]string{`[{"name":"f","input_schema":{}}]`, translated}
	functions := [2]string{`[{"type":"function","name":"f","function":{"name":"f"}}]`, translated}
	format := `{"type":"json_schema","schema":{"type":"object"},"json_schema":{"schema":{"type":"object"}}}`
	return map[string]part{
		"Messages": {messages.Decode, []any{anthropic.MessageNewParams{}, anthropic.BetaMessageNewParams{}}, msgs, map[string][2]string{
			"model": need, "max_tokens": need, "messages": need, "stream": {`true`, translated}, "top_k": {`5`, "top_k"}, "temperature": {`0.5`, translated}, "top_p": {`0.5`, translated},
			"inference_geo": {`"eu"`, "inference_geo"}, "container": {`"c"`, "container"}, "speed": {`"fast"`, ignored}, "cache_control": {`{"type":"ephemeral"}`, ignored},
			"diagnostics": {`{"previous_message_id":"m"}`, ignored}, "metadata": {`{"user_id":"u"}`, ignored}, "service_tier": {`"auto"`, ignored},
			"output_config": {`{"effort":"low"}`, translated}, "stop_sequences": {`["x"]`, translated}, "system": {`"s"`, translated}, "thinking": {`{"type":"adaptive"}`, translated},
			"tool_choice": {`{"type":"any"}`, translated}, "tools": tools, "output_format": {format, translated},
			"fallback_credit_token": {`"t"`, ignored}, "billing_policy": {`{"bill_to":"self"}`, ignored}, "fallbacks": {`[{"model":"n"}]`, "fallbacks"}, "thread": {`{"type":"create"}`, "thread"},
			"compaction": {`{"type":"summary"}`, "compaction"}, "context_management": {`{"edits":[{"type":"clear_tool_uses_20250919"}]}`, "context_management.edits"}, "mcp_servers": {`[{"name":"s"}]`, "mcp_servers"},
		}},
		"Messages output_config": {messages.Decode, []any{anthropic.OutputConfigParam{}, anthropic.BetaOutputConfigParam{}}, strings.Replace(msgs, "%s", `,"output_config":{"x":1%s}`, 1), map[string][2]string{
			"effort": {`"low"`, translated}, "format": {format, translated}, "task_budget": {`{"type":"tokens","total":9}`, "output_config.task_budget"},
		}},
		"Messages tool": {messages.Decode, []any{anthropic.ToolParam{}, anthropic.BetaToolParam{}}, strings.Replace(msgs, "%s", `,"tools":[{"name":"f"%s}]`, 1), map[string][2]string{
			"name": need, "type": {`"custom"`, "given"}, "input_schema": {`{"type":"object"}`, translated}, "description": {`"d"`, translated}, "strict": {`true`, translated}, "input_examples": {`[{"a":1}]`, translated},
			"defer_loading": {`true`, translated}, "allowed_callers": {`["code_execution_20260120"]`, "tools.0.allowed_callers"}, "eager_input_streaming": {`true`, ignored}, "cache_control": {`{"type":"ephemeral"}`, ignored},
		}},
		"Messages system message": {messages.Decode, []any{anthropic.SystemMessageParam{}, anthropic.BetaSystemMessageParam{}}, `{"model":"m","max_tokens":9,"messages":[` + hi + `,{"role":"system","content":"s"%s},` + hi + `]}`, map[string][2]string{
			"role": need, "content": {`[{"type":"image"}]`, "messages.1.content.0"}, "clear_at": {`{"type":"x"}`, "messages.1.clear_at"}, "output_config": {`{"effort":"low"}`, "messages.1.output_config"},
		}},
		"Messages text": {messages.Decode, []any{anthropic.TextBlockParam{}}, strings.Replace(msgs, `"content":"hi"`, `"content":[{"type":"text","text":"hi"%s}]`, 1), map[string][2]string{
			"type": need, "text": {`"ho"`, translated}, "citations": {`[{"type":"char_location"}]`, ignored}, "cache_control": {`{"type":"ephemeral"}`, ignored},
		}},
		"Messages document": {messages.Decode, []any{anthropic.DocumentBlockParam{}, anthropic.ImageBlockParam{}}, strings.Replace(msgs, `"content":"hi"`, `"content":[{"type":"document","source":{"type":"text","data":"d"}%s}]`, 1), map[string][2]string{
			"type": need, "source": {`{"type":"text","data":"e"}`, translated}, "title": {`"t"`, translated}, "context": {`"c"`, "messages.0.content.0.context"}, "citations": {`{"enabled":true}`, "messages.0.content.0.citations"},
			"transformations": {`{"resize":"none"}`, "messages.0.content.0.transformations"}, "cache_control": {`{"type":"ephemeral"}`, ignored},
		}},
		"Messages call": {messages.Decode, []any{anthropic.ToolUseBlockParam{}}, `{"model":"m","max_tokens":9,"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}%s}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}`, map[string][2]string{
			"type": need, "id": need, "name": {`"g"`, translated}, "input": {`{"a":1}`, translated}, "toolset_name": {`"s"`, "messages.1.content.0.toolset_name"}, "caller": {`{"type":"code_execution_20260120","tool_id":"t"}`, "messages.1.content.0.caller"}, "cache_control": {`{"type":"ephemeral"}`, ignored},
		}},
		"Messages result": {messages.Decode, []any{anthropic.ToolResultBlockParam{}}, `{"model":"m","max_tokens":9,"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"%s}]}]}`, map[string][2]string{
			"type": need, "tool_use_id": need, "content": {`"r"`, translated}, "is_error": {`true`, translated}, "toolset_name": {`"s"`, "messages.2.content.0.toolset_name"}, "cache_control": {`{"type":"ephemeral"}`, ignored},
		}},
		"Chat Completions": {chat.Decode, []any{openai.ChatCompletionNewParams{}}, cc, map[string][2]string{
			"model": need, "messages": need, "stream": {`true`, translated}, "max_tokens": {`9`, translated}, "max_completion_tokens": {`9`, translated}, "temperature": {`0.5`, translated}, "top_p": {`0.5`, translated},
			"tools": functions, "tool_choice": {`"required"`, translated}, "parallel_tool_calls": {`false`, translated}, "stop": {`"x"`, translated}, "stream_options": {`{"include_usage":true}`, translated},
			"reasoning_effort": {`"low"`, translated}, "response_format": {format, translated},
			"frequency_penalty": {`0.5`, "frequency_penalty"}, "presence_penalty": {`-1`, "presence_penalty"}, "logit_bias": {`{"5":1}`, "logit_bias"}, "logprobs": {`true`, "logprobs"}, "top_logprobs": {`2`, "top_logprobs"}, "n": {`2`, "n"},
			"audio": {`{"voice":"v"}`, "audio"}, "modalities": {`["text","audio"]`, "modalities"}, "moderation": {`{"model":"m"}`, "moderation"}, "verbosity": {`"low"`, "verbosity"}, "function_call": {`"auto"`, "function_call"}, "functions": {`[{"name":"f"}]`, "functions"}, "web_search_options": {`{}`, "web_search_options"},
			"prompt_cache_key": {`"k"`, ignored}, "safety_identifier": {`"u"`, ignored}, "seed": {`5`, ignored}, "store": {`true`, ignored}, "user": {`"u"`, ignored}, "metadata": {`{"a":"b"}`, ignored}, "prompt_cache_retention": {`"24h"`, ignored}, "prompt_cache_options": {`{"a":1}`, ignored}, "service_tier": {`"auto"`, ignored}, "prediction": {`{"type":"content","content":"c"}`, ignored},
		}},
		"Chat Completions user": {chat.Decode, []any{openai.ChatCompletionUserMessageParam{}}, strings.Replace(cc, `"content":"hi"`, `"content":"hi"%s`, 1), map[string][2]string{
			"role": need, "content": {`"ho"`, translated}, "name": {`"ada"`, "messages[0].name"},
		}},
		"Chat Completions system": {chat.Decode, []any{openai.ChatCompletionSystemMessageParam{}, openai.ChatCompletionDeveloperMessageParam{}}, `{"model":"m","messages":[{"role":"system","content":"s"%s},` + hi + `]}`, map[string][2]string{
			"role": need, "content": {`"t"`, translated}, "name": {`"ada"`, "messages[0].name"},
		}},
		"Chat Completions assistant": {chat.Decode, []any{openai.ChatCompletionAssistantMessageParam{}}, `{"model":"m","messages":[` + hi + `,{"role":"assistant","content":"a"%s},` + hi + `]}`, map[string][2]string{
			"role": need, "content": {`"b"`, translated}, "refusal": {`"no"`, translated}, "name": {`"ada"`, "messages[1].name"}, "audio": {`{"id":"a"}`, "messages[1].audio"}, "function_call": {`{"name":"f","arguments":"{}"}`, "messages[1].function_call"},
			"tool_calls": {`[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`, "messages"},
		}},
		"Chat Completions result": {chat.Decode, []any{openai.ChatCompletionToolMessageParam{}, struct {
			Name string `json:"name"`
		}{}}, `{"model":"m","messages":[` + hi + `,` + called + `,{"role":"tool","tool_call_id":"c","content":"r"%s}]}`, map[string][2]string{
			"role": need, "tool_call_id": need, "content": {`"s"`, translated}, "name": {`"g"`, "messages[2].name"},
		}},
		"Chat Completions function": {chat.Decode, []any{shared.FunctionDefinitionParam{}}, strings.Replace(cc, "%s", `,"tools":[{"type":"function","function":{"name":"f"%s}}]`, 1), map[string][2]string{
			"name": need, "strict": {`true`, translated}, "description": {`"d"`, translated}, "parameters": {`{"type":"object"}`, translated},
		}},
		"Chat Completions JSON schema": {chat.Decode, []any{shared.ResponseFormatJSONSchemaJSONSchemaParam{}}, strings.Replace(cc, "%s", `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}%s}}`, 1), map[string][2]string{
			"name": {`"n"`, translated}, "strict": {`true`, translated}, "description": {`"d"`, translated}, "schema": {`{"type":"array"}`, translated},
		}},
		"Responses": {wire.Decode, []any{responses.ResponseNewParams{}}, resp, map[string][2]string{
			"model": need, "input": need, "stream": {`true`, translated}, "instructions": {`"s"`, translated}, "max_output_tokens": {`9`, translated}, "parallel_tool_calls": {`false`, translated}, "temperature": {`0.5`, translated}, "top_p": {`0.5`, translated},
			"reasoning": {`{"effort":"low"}`, translated}, "text": {`{"format":` + format + `}`, translated}, "tool_choice": {`"required"`, translated}, "tools": functions,
			"background": {`true`, "background"}, "previous_response_id": {`"r"`, "previous_response_id"}, "top_logprobs": {`2`, "top_logprobs"}, "context_management": {`[{"type":"compaction"}]`, "context_management"}, "conversation": {`"c"`, "conversation"},
			"include": {`["message.output_text.logprobs"]`, "include"}, "moderation": {`{"model":"m"}`, "moderation"}, "prompt": {`{"id":"p"}`, "prompt"}, "truncation": {`"auto"`, "truncation"}, "access_programs": {`{"a":1}`, "access_programs"}, "image": {`{"a":1}`, "image"},
			"max_tool_calls": {`3`, ignored}, "prompt_cache_key": {`"k"`, ignored}, "safety_identifier": {`"u"`, ignored}, "store": {`true`, ignored}, "user": {`"u"`, ignored}, "metadata": {`{"a":"b"}`, ignored}, "prompt_cache_retention": {`"24h"`, ignored}, "prompt_cache_options": {`{"a":1}`, ignored}, "service_tier": {`"auto"`, ignored}, "stream_options": {`{"include_obfuscation":false}`, ignored},
		}},
		"Responses reasoning": {wire.Decode, []any{shared.ReasoningParam{}}, strings.Replace(resp, "%s", `,"reasoning":{"x":1%s}`, 1), map[string][2]string{
			"effort": {`"low"`, translated}, "context": {`"all_turns"`, "reasoning.context"}, "mode": {`"pro"`, "reasoning.mode"}, "summary": {`"auto"`, ignored}, "generate_summary": {`"auto"`, ignored},
		}},
		"Responses text": {wire.Decode, []any{responses.ResponseTextConfigParam{}}, strings.Replace(resp, "%s", `,"text":{"x":1%s}`, 1), map[string][2]string{
			"format": {format, translated}, "verbosity": {`"low"`, "text.verbosity"},
		}},
		"Responses JSON schema": {wire.Decode, []any{responses.ResponseFormatTextJSONSchemaConfigParam{}}, strings.Replace(resp, "%s", `,"text":{"format":{"type":"json_schema","schema":{"type":"object"}%s}}`, 1), map[string][2]string{
			"type": need, "name": {`"n"`, translated}, "strict": {`true`, translated}, "description": {`"d"`, translated}, "schema": {`{"type":"array"}`, translated},
		}},
		"Responses function": {wire.Decode, []any{responses.FunctionToolParam{}}, strings.Replace(resp, "%s", `,"tools":[{"type":"function","name":"f"%s}]`, 1), map[string][2]string{
			"type": need, "name": need, "strict": {`true`, translated}, "description": {`"d"`, translated}, "parameters": {`{"type":"object"}`, translated},
			"async": {`true`, "tools[0].async"}, "defer_loading": {`true`, "tools[0].defer_loading"}, "allowed_callers": {`["programmatic"]`, "tools[0].allowed_callers"}, "output_schema": {`{"type":"object"}`, "tools[0].output_schema"},
		}},
		"Responses message": {wire.Decode, []any{responses.EasyInputMessageParam{}, responses.ResponseInputItemMessageParam{}, responses.ResponseOutputMessageParam{}}, `{"model":"m","input":[{"role":"user","content":"hi"%s}]}`, map[string][2]string{
			"type": need, "role": need, "content": {`"ho"`, translated}, "phase": {`"commentary"`, ignored}, "status": {`"completed"`, ignored}, "id": {`"i"`, ignored},
		}},
		"Responses call": {wire.Decode, []any{responses.ResponseFunctionToolCallParam{}}, `{"model":"m","input":[` + hi + `,{"type":"function_call","call_id":"c","name":"f","arguments":"{}"%s},{"type":"function_call_output","call_id":"c","output":"r"}]}`, map[string][2]string{
			"type": need, "call_id": need, "name": {`"g"`, translated}, "arguments": {`"{\"a\":1}"`, translated}, "status": {`"completed"`, ignored}, "id": {`"i"`, ignored},
			"async": {`true`, "input[1].async"}, "namespace": {`"n"`, "input[1].namespace"}, "caller": {`{"type":"program"}`, "input[1].caller"},
		}},
		"Responses result": {wire.Decode, []any{responses.ResponseInputItemFunctionCallOutputParam{}}, `{"model":"m","input":[` + hi + `,{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"%s}]}`, map[string][2]string{
			"type": need, "call_id": need, "output": {`"s"`, translated}, "status": {`"completed"`, ignored}, "id": {`"i"`, ignored},
			"name": {`"g"`, "input[2].name"}, "namespace": {`"n"`, "input[2].namespace"}, "caller": {`{"type":"program"}`, "input[2].caller"},
		}},
	}
}

// Each field that the vendors' SDKs know is translated, or refused by its name, or on the page's list of fields that
// change no answer.
func TestNoFieldIsDropped(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/model-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "Fields that change no answer")
	for name, p := range parts() {
		for _, s := range p.sdk {
			for f := range reflect.TypeOf(s).Fields() {
				field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if _, known := p.fields[field]; !known && field != "" && field != "-" {
					t.Errorf("%s: the SDK has the field %s: translate it, refuse it, or add it to the page's list", name, field)
				}
			}
		}
		plain, err := p.decode([]byte(strings.ReplaceAll(p.form, "%s", "")))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for field, f := range p.fields {
			example, want := f[0], f[1]
			if want == "given" {
				continue
			}
			with := strings.ReplaceAll(strings.Replace(p.form, "%s", `,"`+field+`":`+example, 1), "%s", "")
			if !json.Valid([]byte(with)) {
				t.Fatalf("%s is not JSON", with)
			}
			got, err := p.decode([]byte(with))
			same := err == nil && cmp.Equal(plain, got, protocmp.Transform())
			switch {
			case want == translated && (err != nil || same):
				t.Errorf("%s: %s is not translated: %v", name, field, err)
			case want == ignored && (!same || !strings.Contains(list, "`"+field+"`")):
				t.Errorf("%s: %s changes the request (%v), or is not on the page's list", name, field, err)
			case want != translated && want != ignored && (err == nil || !strings.HasPrefix(err.Error(), want+": ")):
				t.Errorf("%s: %s is not refused by its name: %v", name, field, err)
			}
		}
	}
}

// A field that asks for nothing is as good as none.
func TestFieldsThatAskForNothingAreAccepted(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi","name":""}]`
	for _, c := range []struct {
		decode func([]byte) (*dialog.Request, error)
		body   string
	}{
		{chat.Decode, `{"model":"m",` + hi + `,"frequency_penalty":0.0,"presence_penalty":0,"logit_bias":{},"logprobs":false,"top_logprobs":0,"modalities":[ "text" ],"verbosity":"medium","functions":[],"audio":null,"web_search_options":null,"n":1}`},
		{chat.Decode, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","name":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"r"}]}`},
		{messages.Decode, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"},"citations":{"enabled":false},"context":null}]}],"tools":[{"name":"f","allowed_callers":["direct"]}],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"mcp_servers":[],"container":null}`},
		{wire.Decode, `{"model":"m","input":"hi","background":false,"previous_response_id":null,"truncation":"disabled","top_logprobs":0,"include":["reasoning.encrypted_content"],"reasoning":{"context":"auto","mode":"standard"},"text":{"verbosity":"medium"}}`},
	} {
		if _, err := c.decode([]byte(c.body)); err != nil {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}
