// Follows a session with Anthropic's official client while its server is killed and started again.
import { once } from "node:events";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.SERVER + "/anthropic", apiKey: "none", maxRetries: 8 });
const { agents, environments, sessions } = client.beta;
const agent = await agents.create({ name: "Helper", model: "scripted:agents", tools: [{ type: "agent_toolset_20260401" }] });
const environment = await environments.create({ name: "e" });
const { id } = await sessions.create({ agent: agent.id, environment_id: environment.id });
const known = new Map();

async function follow(stream, told) {
  for await (const e of stream) {
    if (e.type === "event_delta" && !told) {
      console.log("streaming");
      told = true;
    }
    if (e.id) known.set(e.id, e);
    if (e.type === "session.status_idle") return;
  }
  throw new Error("the stream ended early");
}

const first = await sessions.events.stream(id, { event_deltas: ["agent.message"] });
await sessions.events.send(id, { events: [{ type: "user.message", content: [{ type: "text", text: "slow" }] }] });
await follow(first, false).then(() => console.log("the stream ended well"), () => console.log("cut off"));
await once(process.stdin, "data"); // the server is back
process.stdin.destroy();
const rest = await sessions.events.stream(id);
for await (const e of sessions.events.list(id)) known.set(e.id, e);
if (![...known.values()].some((e) => e.type === "session.status_idle")) await follow(rest, true);
const messages = [...known.values()].filter((e) => e.type === "user.message" || e.type === "agent.message");
console.log(messages.map((e) => e.content.map((b) => b.text).join("")).join("|"));
process.exit(); // the second stream stays open
