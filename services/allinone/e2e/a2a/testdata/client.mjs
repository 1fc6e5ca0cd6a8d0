// Drives a server with the official client of A2A. Each line that it prints is a check that held; the test counts them.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";

const server = process.env.SERVER;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const held = (what) => process.stdout.write(what + "\n");
process.on("unhandledRejection", (e) => { if (!/terminated|aborted/.test(String(e))) throw e; });

const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [process.env.TRANSPORT] }));
const connect = (agent) => factory.createFromUrl(`${server}/a2a/${agent}/`);
const coder = await connect("coder"), asker = await connect("asker");
const state = { completed: 3, failed: 4, canceled: 5, input: 6 };

let count = 0;
const text = (value) => ({ content: { $case: "text", value } });
const data = (value) => ({ content: { $case: "data", value } });
const message = (parts, more = {}) => ({ message: { messageId: `${process.env.TRANSPORT}-${++count}`, role: 1, parts: [parts].flat(), ...more } });
const said = (task) => task.artifacts.at(-1).parts.map((p) => p.content.value).join("");

// View is what a client makes of a stream.
class View {
  artifacts = new Map();
  take({ payload: { $case, value } }) {
    if ($case === "task") {
      Object.assign(this, { id: value.id, contextId: value.contextId, status: value.status });
      this.artifacts = new Map(value.artifacts.map((a) => [a.artifactId, a.parts[0].content.value]));
    } else if ($case === "statusUpdate") {
      this.status = value.status;
    } else {
      const { artifactId, parts } = value.artifact;
      this.artifacts.set(artifactId, (value.append ? this.artifacts.get(artifactId) : "") + parts[0].content.value);
    }
  }
  get text() { return [...this.artifacts.values()].at(-1) ?? ""; }
}

// follow reads a stream, until it ends or enough returns true.
async function follow(stream, enough = () => false) {
  const view = new View();
  for await (const event of stream) {
    view.take(event);
    if (enough(view)) break;
  }
  return view;
}

// resume follows the rest of a task. One that has ended meanwhile is read, and a server that is not ready is asked again.
async function resume(id) {
  for (let tries = 0; ; tries++) {
    try {
      return await follow(coder.resubscribeTask({ id }));
    } catch (e) {
      if (/UnsupportedOperation/.test(e.name)) {
        const view = new View();
        view.take({ payload: { $case: "task", value: await coder.getTask({ id }) } });
        return view;
      }
      if (tries === 100) throw e;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

{ // a plain task, and one that follows
  const request = message(text("hello"));
  const task = await coder.sendMessage(request);
  assert.equal(task.status.state, state.completed);
  assert.equal(said(task), "Hello there.");
  assert.deepEqual(await coder.sendMessage(request), task);
  held("a plain task");
  const next = await follow(coder.sendMessageStream(message(text("again"), { contextId: task.contextId })));
  assert.equal(next.text, "And again.");
  assert.equal(next.contextId, task.contextId);
  held("a task that follows");
  assert.deepEqual(await coder.getTask({ id: task.id }), task);
  const list = await coder.listTasks({ contextId: task.contextId, status: 0 });
  assert.deepEqual(list.tasks.map((t) => t.id), [next.id, task.id]);
  held("a page that is loaded again");
}
{ // a tool
  const view = await follow(coder.sendMessageStream(message(text("list"))));
  assert.equal(view.text.trim(), "found");
  held("a tool");
}
{ // a failure
  const view = await follow(coder.sendMessageStream(message(text("refused"))));
  assert.equal(view.status.state, state.failed);
  assert.match(view.status.message.parts[0].content.value, /wrong key/);
  held("a failure");
}
for (const decision of ["approve", "deny"]) {
  const view = await follow(asker.sendMessageStream(message(text("write"))));
  assert.equal(view.status.state, state.input);
  assert.equal(view.status.message.parts[1].content.value.approval.tool, "Write");
  const task = await asker.sendMessage(message(data({ decision }), { taskId: view.id, contextId: view.contextId }));
  assert.equal(task.status.state, state.completed);
  assert.match(said(task), decision === "approve" ? /created/ : /refused/);
  held(`an approval: ${decision}`);
}
{ // a question
  const task = await asker.sendMessage(message(text("ask me")));
  assert.equal(task.status.state, state.input);
  const view = await follow(asker.sendMessageStream(message(text("B"), { taskId: task.id })));
  assert.match(view.text, /B/);
  held("a question");
}
{ // an end by request
  const view = await follow(coder.sendMessageStream(message(text("forever"))), (v) => v.text);
  assert.equal((await coder.cancelTask({ id: view.id })).status.state, state.canceled);
  await assert.rejects(coder.getTask({ id: "none" }), (e) => /no task/.test(String(e)) && /TaskNotFound/.test(e.name));
  held("an interrupt");
}
{ // a client that leaves, and comes back
  const part = await follow(coder.sendMessageStream(message(text("count"))), (v) => v.text.length > 80);
  const rest = await resume(part.id);
  assert.equal(rest.text, "tick".repeat(150));
  assert.equal(rest.status.state, state.completed);
  held("a client that leaves");
}
{ // a server that dies
  let id;
  await follow(coder.sendMessageStream(message(text("count"))), (v) => {
    if (!id && v.text.length > 80) {
      id = v.id;
      held("kill");
    }
    return false;
  }).catch(() => {}); // it broke off, unless the task was quicker
  await input.next();
  const rest = await resume(id);
  assert.equal(rest.text, "tick".repeat(150));
  held("a server that dies");
}
process.exit(0);
