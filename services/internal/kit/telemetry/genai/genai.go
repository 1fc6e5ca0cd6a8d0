// Package genai has the names of the attributes on spans about models, agents and tools: those of
// OpenTelemetry's GenAI conventions, and the few of our own.
//
// The conventions left the semconv package after v1.41.0; only this file depends on their version.
package genai

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Keys of the GenAI conventions.
const (
	OperationName            = semconv.GenAIOperationNameKey
	ProviderName             = semconv.GenAIProviderNameKey
	ConversationID           = semconv.GenAIConversationIDKey
	AgentName                = semconv.GenAIAgentNameKey
	AgentID                  = semconv.GenAIAgentIDKey
	RequestModel             = semconv.GenAIRequestModelKey
	RequestMaxTokens         = semconv.GenAIRequestMaxTokensKey
	RequestTemperature       = semconv.GenAIRequestTemperatureKey
	RequestStream            = semconv.GenAIRequestStreamKey
	ResponseID               = semconv.GenAIResponseIDKey
	ResponseModel            = semconv.GenAIResponseModelKey
	ResponseFinishReasons    = semconv.GenAIResponseFinishReasonsKey
	TimeToFirstChunk         = semconv.GenAIResponseTimeToFirstChunkKey
	UsageInputTokens         = semconv.GenAIUsageInputTokensKey
	UsageOutputTokens        = semconv.GenAIUsageOutputTokensKey
	UsageCacheReadTokens     = semconv.GenAIUsageCacheReadInputTokensKey
	UsageCacheCreationTokens = semconv.GenAIUsageCacheCreationInputTokensKey
	UsageReasoningTokens     = semconv.GenAIUsageReasoningOutputTokensKey
	ToolName                 = semconv.GenAIToolNameKey
	ToolCallID               = semconv.GenAIToolCallIDKey
	ToolType                 = semconv.GenAIToolTypeKey
	ErrorType                = semconv.ErrorTypeKey
)

// Values of OperationName.
const (
	OperationChat        = "chat"
	OperationInvokeAgent = "invoke_agent"
	OperationExecuteTool = "execute_tool"
)

// Keys of our own.
const (
	Tenant    = attribute.Key("fairlead.tenant")
	Session   = attribute.Key("fairlead.session")
	Turn      = attribute.Key("fairlead.turn")
	Step      = attribute.Key("fairlead.step")
	Epoch     = attribute.Key("fairlead.epoch")
	ExitCode  = attribute.Key("fairlead.exec.exit_code")
	ExecLevel = attribute.Key("fairlead.exec.level")
)
