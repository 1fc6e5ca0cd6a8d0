// A turn through a client of the types that openapi-typescript has made.
import createClient from "openapi-fetch";
import type { components, paths } from "./made.js";

declare const process: { env: Record<string, string> };
type Line = { result?: components["schemas"]["fairlead.session.v1.RunTurnResponse"] };

const client = createClient<paths>({ baseUrl: process.env.GUARDED, headers: { Authorization: `Bearer ${process.env.GUARDED_KEY}` } });
const made = await client.POST("/v1/sessions", { body: { agent: "agents/helper" } });
const session = made.data!.name!.split("/")[1]!;
const path = { session };
const body = { content: [{ text: { text: "plain" } }] };
const turn = await client.POST("/v1/sessions/{session}/turns", { params: { path, header: { "Idempotency-Key": "one" } }, body });
const again = await client.POST("/v1/sessions/{session}/turns", { params: { path, header: { "Idempotency-Key": "one" } }, body });
console.log("the same turn:", turn.data!.name === again.data!.name);

const stream = await client.POST("/v1/sessions/{session}/turns:stream", {
  params: { path }, body: { text: "again" }, headers: { Accept: "application/x-ndjson" }, parseAs: "text",
});
const lines = stream.data!.trim().split("\n").map((line) => JSON.parse(line) as Line);
console.log("the stream ends:", lines.at(-1)!.result?.event?.turnFinished?.state);

const done = await client.GET("/v1/sessions/{session}/turns/{turn}", { params: { path: { session, turn: turn.data!.name!.split("/")[3]! } } });
console.log("the turn:", done.data!.state);
const events = await client.GET("/v1/sessions/{session}/events", { params: { path, query: { page_size: 1000 } } });
console.log("the log ends:", events.data!.events!.at(-1)!.turnFinished?.state);
const refused = await client.GET("/v1/sessions/{session}", { params: { path: { session: "none" } } });
console.log("an error:", refused.error!.code, refused.response.status);
