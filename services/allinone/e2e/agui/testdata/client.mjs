// Drives a server with an official client of AG-UI. Each line that it prints is a check that held; the test counts them.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";

const { HttpAgent, runHttpRequest, transformHttpEventStream } = await import(process.env.MODULE);
const server = process.env.SERVER;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// The reader of a connection that is cut off is rejected beside the run, too.
process.on("unhandledRejection", (e) => { if (!/terminated/.test(String(e))) throw e; });

const warnings = [];
for (const level of ["warn", "error"]) console[level] = (...all) => warnings.push(all.map(String).join(" "));

// Thread is an agent that shows a page that was loaded again its thread.
class Thread extends HttpAgent {
  connect(run) {
    const url = `${server}/v1/agui/asker/events?threadId=${encodeURIComponent(run.threadId)}`;
    return transformHttpEventStream(runHttpRequest(() => fetch(url, { headers: { Accept: "text/event-stream" } })));
  }
}

const agent = (threadId, name = "asker", more = {}) => new Thread({ url: `${server}/v1/agui/${name}`, threadId, ...more });
const say = (a, id, content) => a.addMessage({ id, role: "user", content });
const text = (a) => a.messages.filter((m) => m.role === "assistant").map((m) => m.content ?? "").join("|");
const held = (what) => process.stdout.write(what + "\n");

// end runs an agent and returns the run's last event.
async function end(a, parameters = {}) {
  let last;
  await a.runAgent(parameters, {
    onRunFinishedEvent: ({ event }) => { last = event; },
    onRunErrorEvent: ({ event }) => { last = event; },
  }).catch((e) => { last ??= { type: "THROWN", message: String(e) }; });
  return last;
}

{ // a plain turn, and one that follows
  const a = agent("plain");
  say(a, "u1", "hello");
  assert.equal((await end(a)).type, "RUN_FINISHED");
  assert.equal(text(a), "Hello there.");
  assert.equal(a.state.fairlead.status, "complete");
  held("a plain turn");
  say(a, "u2", "again");
  await end(a);
  assert.equal(text(a), "Hello there.|And again.");
  held("a turn that follows");
  const b = agent("plain");
  await b.connectAgent();
  assert.equal(text(b), "Hello there.|And again.");
  assert.equal(b.messages.filter((m) => m.role === "user").length, 2);
  held("a page that is loaded again");
}
{ // a tool of the server
  const a = agent("tool", "coder");
  say(a, "u1", "list");
  await end(a);
  assert.match(a.messages.find((m) => m.role === "tool").content, /found/);
  assert.equal(a.messages.find((m) => m.toolCalls)?.toolCalls[0].function.name, "Bash");
  held("a tool");
}
{ // a failure
  const a = agent("failure");
  say(a, "u1", "refused");
  const last = await end(a);
  assert.equal(last.type, "RUN_ERROR");
  assert.equal(last.code, "MODEL_AUTHENTICATION");
  held("a failure");
}
for (const [name, payload, want] of [["approve", { approved: true }, /created/], ["deny", { approved: false, comment: "not now" }, /not now/]]) {
  const a = agent(name);
  say(a, "u1", "write");
  const last = await end(a);
  assert.equal(last.outcome.type, "interrupt");
  const second = await end(a, { resume: last.outcome.interrupts.map((i) => ({ interruptId: i.id, status: "resolved", payload })) });
  assert.equal(second.outcome.type, "success");
  assert.match(text(a), want);
  held("an approval: " + name);
}
{ // a tool of the client
  const a = agent("client");
  const tools = [{ name: "pick_color", description: "asks for a color", parameters: { type: "object", properties: { hint: { type: "string" } } } }];
  say(a, "u1", "pick");
  const last = await end(a, { tools });
  const { id } = a.messages.find((m) => m.toolCalls).toolCalls[0];
  if (process.env.MODULE === "@ag-ui/client") assert.deepEqual(last.outcome.pendingToolCallIds, [id]); // older ones do not know it
  a.addMessage({ id: "result", role: "tool", toolCallId: id, content: "red" });
  await end(a, { tools });
  assert.match(text(a), /You picked red$/);
  assert.equal(a.messages.filter((m) => m.role === "tool").length, 1);
  held("a tool of the client");
}
{ // a subagent that waits
  const a = agent("subagent", "lead");
  say(a, "u1", "delegate");
  const last = await end(a);
  const second = await end(a, { resume: last.outcome.interrupts.map((i) => ({ interruptId: i.id, status: "resolved", payload: { approved: true } })) });
  assert.equal(second.outcome.type, "success");
  held("a subagent that waits");
}
{ // the user stops the run
  const a = agent("stop");
  say(a, "u1", "forever");
  let asked = false;
  let last;
  await a.runAgent({}, {
    onTextMessageContentEvent: () => {
      if (asked) return;
      asked = true;
      void fetch(`${server}/v1/agui/asker/interrupt`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ thread_id: "stop" }) });
    },
    onRunFinishedEvent: ({ event }) => { last = event; },
    onRunErrorEvent: ({ event }) => { last = event; },
  }).catch(() => {});
  assert.equal(process.env.MODULE === "@ag-ui/client" ? last.outcome.type : last.code, "cancelled");
  held("an interrupt");
}
// half runs an agent until it has said something, and what stops it then.
async function half(a, runId, stop) {
  let n = 0;
  await a.runAgent({ runId }, { onTextMessageContentEvent: () => { if (++n === 20) stop(); } }).catch(() => {});
}
{ // the client leaves in the middle of a run, and asks for it again
  const a = agent("leave");
  say(a, "u1", "count");
  await half(a, "leave-1", () => a.abortRun());
  assert.ok(text(a).length > 0 && text(a).length < 600, text(a));
  const b = agent("leave", "asker", { initialMessages: a.messages });
  assert.equal((await end(b, { runId: "leave-1" })).outcome.type, "success");
  assert.equal(text(b), "tick".repeat(150));
  held("a client that leaves");
}
{ // the server dies in the middle of a run
  const a = agent("die");
  say(a, "u1", "count");
  await half(a, "die-1", () => held("kill"));
  await input.next(); // it runs again
  const b = agent("die", "asker", { initialMessages: a.messages });
  assert.equal((await end(b, { runId: "die-1" })).outcome.type, "success");
  assert.equal(text(b), "tick".repeat(150));
  held("a server that dies");
}
const odd = warnings.filter((w) => !/abort|terminated|fetch failed|ECONN|socket|RUN_ERROR|wrong key|Agent execution failed|Model|cancel/i.test(w));
assert.deepEqual(odd, []);
held("no warning");
process.exit(0);
