package catalog

// PricesAsOf is the day on which the table of known models was last compared
// with the providers' price lists. Other prices are set in the configuration.
const PricesAsOf = "2026-11-21"

// Default models of a provider with a key.
const (
	defaultAnthropic = "anthropic:claude-sonnet-5-5"
	defaultOpenAI    = "openai:gpt-5.6-terra"
	defaultScripted  = "scripted:default"
)

// defaultThinking bounds the thinking of models that think.
const defaultThinking = 8_000

// claude returns the list prices of a model: a write to the cache (for five
// minutes) costs a quarter more than input, a read a tenth of it.
func claude(input, output float64) Prices {
	return Prices{Input: input, Output: output, CacheRead: input / 10, CacheWrite: input * 1.25}
}

// gpt returns the prices of a model whose cached input costs a tenth, and whose
// requests above 272,000 tokens cost more.
func gpt(input, output float64) Prices {
	return Prices{Input: input, Output: output, CacheRead: input / 10, LongAfter: 272_000, LongInput: 2, LongOutput: 1.5}
}

// known are the models that need no configuration.
var known = map[string]Limits{
	"anthropic:claude-fable-5-1":  adaptive(claude(10, 50)),
	"anthropic:claude-opus-5-5":   adaptive(claude(4, 20)),
	"anthropic:claude-sonnet-5-5": adaptive(Prices{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5}),
	"anthropic:claude-haiku-5-5":  adaptive(Prices{Input: 0.1, Output: 0.5, CacheRead: 0.01, CacheWrite: 0.125, LongAfter: 100_000, LongInput: 5, LongOutput: 5}),
	"anthropic:claude-opus-5":     adaptive(claude(5, 25)),
	"anthropic:claude-sonnet-5":   adaptive(claude(2, 10)),
	"anthropic:claude-opus-4-6":   adaptive(claude(5, 25)),
	"anthropic:claude-sonnet-4-6": budget(1_000_000, 64_000, claude(3, 15)),
	"anthropic:claude-opus-4-5":   budget(200_000, 64_000, claude(5, 25)),
	"anthropic:claude-haiku-4-5":  budget(200_000, 64_000, claude(1, 5)),

	"openai:gpt-5.6-sol":   calm(gpt(4, 20)),
	"openai:gpt-5.6-terra": calm(gpt(2, 12)),
	"openai:gpt-5.6-luna":  calm(gpt(0.2, 1.2)),
	"openai:gpt-5.5":       plain(1_050_000, 128_000, gpt(5, 30)),
	"openai:gpt-5.4":       plain(1_050_000, 128_000, gpt(2.5, 15)),
	"openai:gpt-5.4-mini":  plain(400_000, 128_000, Prices{Input: 0.75, Output: 4.5, CacheRead: 0.075}),
	"openai:gpt-5.2":       plain(400_000, 128_000, Prices{Input: 1.75, Output: 14, CacheRead: 0.175}),
	"openai:gpt-5-mini":    plain(400_000, 128_000, Prices{Input: 0.25, Output: 2, CacheRead: 0.025}),
	"openai:gpt-4.1":       plain(1_047_576, 32_768, Prices{Input: 2, Output: 8, CacheRead: 0.5}),
}

// adaptive returns the limits of all models that decide themselves how much
// they think.
func adaptive(p Prices) Limits {
	return Limits{ContextTokens: 1_000_000, MaxOutputTokens: 128_000, ThinkingTokens: defaultThinking, Thinking: "adaptive", Prices: p}
}

func budget(context, output int64, p Prices) Limits {
	return Limits{ContextTokens: context, MaxOutputTokens: output, ThinkingTokens: defaultThinking, Thinking: "budget", Prices: p}
}

func plain(context, output int64, p Prices) Limits {
	return Limits{ContextTokens: context, MaxOutputTokens: output, Prices: p}
}

// calm is plain for models that refuse tools in the Chat Completions API unless
// they are told not to reason.
func calm(p Prices) Limits {
	l := plain(1_050_000, 128_000, p)
	l.ReasoningEffort = "none"
	return l
}
