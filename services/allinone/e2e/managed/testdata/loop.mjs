// Drives the agents of a server with Anthropic's official client.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.SERVER + "/anthropic", apiKey: process.env.FAIRLEAD_API_KEY });
const { agents, environments, sessions } = client.beta;
const say = (text) => ({ type: "user.message", content: [{ type: "text", text }] });
const whole = (e) => e.content.map((b) => b.text).join("");
const send = (id, ...events) => sessions.events.send(id, { events });

async function begin(tools) {
  const agent = await agents.create({ name: "Helper", model: "scripted:agents", system: "Help.", tools });
  const environment = await environments.create({ name: "e", config: { type: "cloud", networking: { type: "unrestricted" } } });
  return (await sessions.create({ agent: agent.id, environment_id: environment.id })).id;
}

// run sends events, and returns what the agent says until the session is idle and needs nothing.
async function run(id, events, act, options) {
  const seen = new Map();
  let text = "", deltas = "";
  const stream = await sessions.events.stream(id, options ?? {});
  await send(id, ...events);
  for await (const e of stream) {
    if (e.type === "event_delta") deltas += e.delta.content.text;
    if (e.id) seen.set(e.id, e);
    if (e.type === "agent.message") text = whole(e);
    if (e.type !== "session.status_idle") continue;
    if (e.stop_reason.type !== "requires_action") return { text, deltas, why: e.stop_reason.type, seen: [...seen.values()] };
    for (const open of e.stop_reason.event_ids) await send(id, act(seen.get(open)));
  }
}

const tools = [{ type: "agent_toolset_20260401" }];
const id = await begin(tools);
let got = await run(id, [say("tool")]);
console.log("quickstart:", got.text, got.why, got.seen.filter((e) => e.type === "agent.tool_use").map((e) => e.name).join());
got = await run(id, [say("and then?")], undefined, { event_deltas: ["agent.message"] });
console.log("follow-up:", got.text, got.deltas === got.text);
got = await run(id, [say("fail")]);
console.log("failure:", got.why);
const all = [];
for await (const e of sessions.events.list(id, { limit: 4 })) all.push(e.id);
console.log("paging:", all.length === new Set(all).size);

const asking = await begin([{ type: "agent_toolset_20260401", default_config: { permission_policy: { type: "always_ask" } } }]);
got = await run(asking, [say("tool")], (e) => ({ type: "user.tool_confirmation", tool_use_id: e.id, result: "allow" }));
console.log("allowed:", got.text);
const own = await begin([{ type: "custom", name: "weather", description: "w", input_schema: { type: "object" } }]);
got = await run(own, [say("client")], (e) => ({ type: "user.custom_tool_result", custom_tool_use_id: e.id, content: [{ type: "text", text: "21" }] }));
console.log("custom tool:", got.text);

const busy = await begin(tools);
const stream = await sessions.events.stream(busy, { event_deltas: ["agent.message"] });
await send(busy, say("long"));
let deltas = 0, said = "";
for await (const e of stream) {
  if (e.type === "event_delta" && ++deltas === 3) await send(busy, { type: "user.interrupt" }, say("stop?"));
  if (e.type === "agent.message") said = whole(e);
  if (e.type === "session.status_idle") break;
}
console.log("interrupt:", said);
await sessions.retrieve("sesn_none").catch((e) => console.log("not found:", e.status, e instanceof Anthropic.NotFoundError));
