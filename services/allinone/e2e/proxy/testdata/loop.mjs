// Runs a loop of tools with an official client: loop.mjs messages|chat|responses MODEL.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [wire, model] = process.argv.slice(2);
const server = process.env.SERVER;
const apiKey = process.env.FAIRLEAD_API_KEY;
const schema = { type: "object", properties: { city: { type: "string" } } };
const weather = (city) => `21 degrees in ${city}`;
const check = (ok, what) => { if (!ok) throw new Error(`unexpected: ${what}`); };
const claude = new Anthropic({ baseURL: server + "/anthropic", apiKey });
const gpt = new OpenAI({ baseURL: server + "/openai/v1", apiKey });
const start = (text) => [{ role: "user", content: text }];

const wires = {
  messages: {
    client: claude,
    tools: [{ name: "weather", description: "tells the weather", input_schema: schema }],
    async stream(talk) {
      let text = "";
      const stream = claude.messages.stream({ model, max_tokens: 2000, messages: talk, tools: this.tools });
      stream.on("text", (piece) => { text += piece; });
      const message = await stream.finalMessage();
      check(message.stop_reason === (talk.length === 1 ? "tool_use" : "end_turn"), message.stop_reason);
      const calls = message.content.filter((b) => b.type === "tool_use").map((b) => [b.id, b.name, b.input]);
      const u = message.usage;
      return [text, calls, [{ role: "assistant", content: message.content }], [u.input_tokens + u.cache_read_input_tokens, u.output_tokens, u.cache_read_input_tokens]];
    },
    results: (results) => [{ role: "user", content: results.map(([id, content]) => ({ type: "tool_result", tool_use_id: id, content })) }],
    async whole(talk) {
      const message = await claude.messages.create({ model, max_tokens: 2000, messages: talk, tools: this.tools });
      return message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
    },
    bad: () => claude.messages.create({ model, max_tokens: 0, messages: start("") }),
    missing: () => claude.messages.create({ model: "none:none", max_tokens: 1, messages: start("x") }),
  },
  chat: {
    client: gpt,
    tools: [{ type: "function", function: { name: "weather", description: "tells the weather", parameters: schema } }],
    async stream(talk) {
      let text = "";
      const stream = gpt.chat.completions.stream({ model, messages: talk, tools: this.tools, stream_options: { include_usage: true } });
      stream.on("content", (piece) => { text += piece; });
      const answer = await stream.finalChatCompletion();
      const { message, finish_reason } = answer.choices[0];
      check(finish_reason === (talk.length === 1 ? "tool_calls" : "stop"), finish_reason);
      const calls = (message.tool_calls ?? []).map((c) => [c.id, c.function.name, JSON.parse(c.function.arguments)]);
      const said = { role: "assistant", content: message.content };
      if (calls.length) said.tool_calls = message.tool_calls.map((c) => ({ id: c.id, type: "function", function: { name: c.function.name, arguments: c.function.arguments } }));
      const u = await stream.totalUsage();
      return [text, calls, [said], [u.prompt_tokens, u.completion_tokens, answer.usage?.prompt_tokens_details?.cached_tokens ?? u.prompt_tokens_details?.cached_tokens]];
    },
    results: (results) => results.map(([id, content]) => ({ role: "tool", tool_call_id: id, content })),
    async whole(talk) {
      return (await gpt.chat.completions.create({ model, messages: talk, tools: this.tools })).choices[0].message.content;
    },
    bad: () => gpt.chat.completions.create({ model, messages: [] }),
    missing: () => gpt.chat.completions.create({ model: "none:none", messages: start("x") }),
  },
  responses: {
    client: gpt,
    tools: [{ type: "function", name: "weather", description: "tells the weather", parameters: schema, strict: false }],
    async stream(talk) {
      let text = "";
      const stream = gpt.responses.stream({ model, input: talk, tools: this.tools, store: false });
      stream.on("response.output_text.delta", (e) => { text += e.delta; });
      const answer = await stream.finalResponse();
      check(answer.status === "completed", answer.status);
      const calls = answer.output.filter((o) => o.type === "function_call").map((o) => [o.call_id, o.name, JSON.parse(o.arguments)]);
      const said = answer.output.filter((o) => o.type !== "reasoning").map((o) => o.type === "function_call"
        ? { type: "function_call", call_id: o.call_id, name: o.name, arguments: o.arguments }
        : { role: "assistant", content: o.content.map((c) => ({ type: "output_text", text: c.text })) });
      const u = answer.usage;
      return [text, calls, said, [u.input_tokens, u.output_tokens, u.input_tokens_details.cached_tokens]];
    },
    results: (results) => results.map(([id, output]) => ({ type: "function_call_output", call_id: id, output })),
    async whole(talk) {
      return (await gpt.responses.create({ model, input: talk, tools: this.tools })).output_text;
    },
    bad: () => gpt.responses.create({ model, input: [] }),
    missing: () => gpt.responses.create({ model: "none:none", input: "x" }),
  },
};

const status = (call) => call().then(() => "no error", (e) => e.status ?? String(e));

const a = wires[wire];
let talk = start("What is the weather?");
let [text, calls, said] = await a.stream(talk);
console.log("streamed:", text + calls.map(([, name, input]) => `${name}(${input.city})`).join(" "));
talk = [...talk, ...said, ...a.results(calls.map(([id, , input]) => [id, weather(input.city)]))];
const [answer, , , usage] = await a.stream(talk);
console.log("answered:", answer);
console.log("usage:", ...usage);
console.log("whole:", await a.whole(talk));
console.log("retried:", (await a.whole(start("How is the stock exchange?"))).trim());
console.log("not found:", await status(a.missing));
console.log("refused:", await status(a.bad));
const names = new Set();
for await (const m of a.client.models.list()) names.add(m.id);
console.log("models:", names.has("anthropic:claude-sonnet-5-5") && names.has("openai:gpt-5.6-terra"));
