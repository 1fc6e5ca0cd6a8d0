// Drives the agents of a server with OpenAI's official client.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.SERVER + "/openai/v1", apiKey: process.env.FAIRLEAD_API_KEY });
const { agents } = client.beta;
const { sessions } = agents;
const environment = { type: "openai_hosted" };
const weather = { type: "function", name: "weather", description: "Says the weather.", parameters: { type: "object" } };
const toolHandlers = { weather: ({ city }) => `21 in ${city}` };
const message = (text) => ({ type: "agent.session.input.message", input: [{ role: "user", content: [{ type: "input_text", text }] }] });

const session = await sessions.create({ agent: { model: "scripted:agents", instructions: "Help.", tools: [weather] }, environment });
let result = await sessions.stream(session.id, { input: "tool" }).finalResult();
console.log("quickstart:", result.output_text, result.turn.status);
const kinds = [];
for await (const item of sessions.items.list(session.id, { order: "asc", limit: 2 })) kinds.push(item.type);
console.log("items:", kinds.join(" "));
for await (const a of sessions.artifacts.list(session.id)) {
  const content = await sessions.artifacts.content(a.id, { session_id: session.id });
  console.log("artifact:", a.path, JSON.stringify(await content.text()));
}
let deltas = "";
const stream = sessions.stream(session.id, { input: "client", toolHandlers }).withResultCollection();
for await (const e of stream) if (e.type === "agent.session.turn.output_text.delta") deltas += e.delta;
console.log("handler:", (await stream.finalResult()).output_text, "|", deltas);

const created = await sessions.create({ agent: { model: "scripted:agents", tools: [weather] }, environment, input: "client", stream: true, toolHandlers });
result = await created.finalResult();
console.log("streamed create:", result.output_text, result.turn.status);

// A person decides: the helper has no handler for it, so the events are followed.
const asking = await sessions.create({ agent_id: "careful", environment });
const events = await sessions.events.stream(asking.id);
await sessions.events.create(asking.id, { events: [message("tool")] });
for await (const e of events) {
  if (e.type === "agent.session.turn.completed") break;
  if (e.type !== "agent.session.requires_action") continue;
  const [action] = e.session.required_actions;
  console.log("asks:", action.type, action.request.server_label, action.request.name);
  const response = { type: "mcp_tool_call", decision: "approve" };
  await sessions.events.create(asking.id, { events: [{ type: "agent.session.input.mcp_approval_request_result", request_id: action.request_id, response }] });
}
const [last] = (await sessions.items.list(asking.id, { limit: 1 })).data;
console.log("approved:", last.content[0].text);


const asker = await sessions.create({ agent_id: "asker", environment });
const asks = { AskUserQuestion: (asked) => ({ answers: { [asked.questions[0].question]: asked.questions[0].options[0].label } }) };
console.log("question:", (await sessions.stream(asker.id, { input: "question", toolHandlers: asks }).finalResult()).output_text);
await sessions.stream(session.id, { input: "fail" }).finalResult().catch((e) => console.log("failure:", e.constructor.name, e.turn.status, e.turn.error.code));

const long = await sessions.create({ agent: { model: "scripted:agents" }, environment });
const turn = sessions.stream(long.id, { input: "long" }).withResultCollection();
let told = false;
for await (const e of turn) {
  if (e.type === "agent.session.turn.output_text.delta" && !told) {
    told = true;
    await sessions.events.create(long.id, { events: [{ type: "agent.session.input.cancel" }] });
  }
}
console.log("cancelled:", await turn.finalResult().then((r) => r.turn.status, (e) => e.reason ?? e.message));

const format = { type: "json_schema", schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } };
const counting = await agents.create({ name: "Counter", model: "scripted:agents", text: { format } });
const counter = await sessions.create({ agent_id: counting.id, environment });
console.log("schema:", (await sessions.stream(counter.id, { input: "schema" }).finalResult()).output_text);
const named = await agents.update(counting.id, { name: "Count" });
const ids = [];
for await (const a of agents.list({ limit: 1 })) ids.push(a.id);
console.log("agents:", named.name, ids.includes(counting.id), new Set(ids).size === ids.length);
console.log("deleted:", (await agents.delete(counting.id)).deleted, (await sessions.delete(counter.id)).deleted);
await sessions.retrieve("none").catch((e) => console.log("not found:", e.status, e instanceof OpenAI.NotFoundError));
await client.beta.agents.automations.list().then(() => console.log("automations"), (e) => console.log("automations:", e.status, e.message.includes("not served")));
