// Calls a gateway over gRPC-Web with Connect's client: node web.mjs URL DESCRIPTORS
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.MODULES + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createFileRegistry, fromBinary } = await load("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = await load("@bufbuild/protobuf/wkt");
const { createClient, ConnectError, Code } = await load("@connectrpc/connect");
const { createGrpcWebTransport } = await load("@connectrpc/connect-web");

const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[3])));
const sessions = createClient(files.getService("fairlead.session.v1.SessionService"), createGrpcWebTransport({ baseUrl: process.argv[2] }));

const seen = {};
let key;
const created = await sessions.createSession(
  { session: { agent: "coder" }, requestId: "k1" }, { onHeader: (h) => { key = h.get("idempotency-key"); } });
seen.created = created.session.name + " " + created.session.lastSeq + " " + key;
seen.events = [];
for await (const m of sessions.streamEvents({ parent: "sessions/s1", afterSeq: 1n })) {
  seen.events.push(Number(m.kind.value.seq));
}
try {
  await sessions.getTurn({ name: "sessions/s9/turns/t" });
} catch (e) {
  const err = ConnectError.from(e);
  seen.error = Code[err.code] + ": " + err.rawMessage + " (" + err.details.map((d) => d.type).join(", ") + ")";
}
console.log(JSON.stringify(seen));
