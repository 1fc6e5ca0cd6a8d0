// Follows a session with OpenAI's official client while its server is killed and started again.
import { once } from "node:events";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.SERVER + "/openai/v1", apiKey: "none", maxRetries: 8 });
const { sessions } = client.beta.agents;
const { id } = await sessions.create({ agent: { model: "scripted:agents" }, environment: { type: "openai_hosted" } });

async function follow() {
  let told = false;
  for await (const e of sessions.stream(id, { input: "slow" })) {
    if (e.type !== "agent.session.turn.output_text.delta" || told) continue;
    console.log("streaming");
    told = true;
  }
}

await follow().then(() => console.log("the stream ended well"), () => console.log("cut off"));
await once(process.stdin, "data"); // the server is back
process.stdin.destroy();
// The first event says what the session does.
for await (const e of await sessions.events.stream(id)) if (e.type === "agent.session.idle") break;
const texts = [];
for await (const i of sessions.items.list(id, { order: "asc" })) if (i.type === "message") texts.push(i.content.map((p) => p.text).join(""));
console.log(texts.join("|"));
