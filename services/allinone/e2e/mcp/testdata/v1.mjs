// The official TypeScript client of version 1 lists and calls tools, and lets its person allow a call.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const connect = async (path) => {
  const client = new Client({ name: "v1", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  let asked = 0;
  client.setRequestHandler(ElicitRequestSchema, () => (asked++, { action: "accept", content: {} }));
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.SERVER + path), {
    requestInit: { headers: { Authorization: `Bearer ${process.env.FAIRLEAD_API_KEY}` } },
  }));
  return { client, asked: () => asked };
};
const helper = await connect("/mcp");
const steps = [];
const { tools } = await helper.client.listTools();
console.log(tools.map((t) => t.name).join(" "));
const result = await helper.client.callTool({ name: "Bash", arguments: { command: "echo hello from $PWD" } }, undefined, { onprogress: (p) => steps.push(p.progress) });
console.log(result.content[0].text);
const asker = await connect("/mcp/agents/asker");
const written = await asker.client.callTool({ name: "Write", arguments: { file_path: "v1.txt", content: "x" } });
console.log(!written.isError, asker.asked(), steps.length > 0);
const error = await helper.client.callTool({ name: "Nothing", arguments: {} }).catch((e) => e.code);
console.log(error);
await Promise.all([helper.client.close(), asker.client.close()]);
