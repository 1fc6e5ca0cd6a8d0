// Drives a server with the chat of one version of the package `ai`: chat.mjs PACKAGE MAJOR. It prints what the client has.
const [, , pkg, major] = process.argv;
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls, ...ai } = await import(pkg);
const server = process.env.SERVER;
const api = `${server}/v1/ai-sdk/chat`;

class State {
  status = "ready";
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (m) => { this.messages = [...this.messages, m]; this.told?.(); };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = [...this.messages.slice(0, i), this.snapshot(m), ...this.messages.slice(i + 1)]; this.told?.(); };
  snapshot = (v) => structuredClone(v);
}

class Chat extends AbstractChat {
  constructor({ messages = [], ...init }) { super({ ...init, state: new State(messages) }); }
  // until resolves when a part of the last message fits.
  until(fits) {
    return new Promise((resolve) => {
      const look = () => { if (this.messages.at(-1)?.parts.some(fits)) { this.state.told = undefined; resolve(); } };
      this.state.told = look;
      look();
    });
  }
  // settled resolves when the last message has an answer in words and nothing is being sent.
  async settled(fits) {
    while (this.status !== "ready" || !this.messages.at(-1).parts.some(fits)) {
      if (this.status === "error") throw this.error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

function make(id, { query = "", body = {}, fetch, ...more } = {}) {
  return new Chat({ id, transport: new DefaultChatTransport({ api: api + query, body, fetch }), ...more });
}

// brief is a message in few words.
function brief(m) {
  return m.parts.filter((p) => p.type !== "step-start" && !p.type.startsWith("data-")).map((p) => {
    if (p.type === "text" || p.type === "reasoning") return `${p.type}:${p.state} ${p.text}`;
    return `${p.type} ${p.toolName} ${p.state} ${JSON.stringify(p.output ?? p.errorText ?? null)}`;
  }).join(" | ");
}

const show = (name, chat) => console.log(`${name}: ${chat.status} ${chat.messages.length} ${brief(chat.messages.at(-1))}`);
const says = (text) => (p) => p.type === "text" && p.text.includes(text);

{
  const chat = make("plain");
  await chat.sendMessage({ text: "hello" });
  show("plain", chat);
  const last = chat.messages.at(-1);
  console.log("metadata:", last.metadata.state, last.metadata.turn.endsWith(last.id), last.metadata.usage.outputTokens > 0);
  await chat.sendMessage({ text: "think" });
  show("follow-up", chat);
}
{ // an answer is made anew, and an earlier message edited
  const chat = make("anew");
  await chat.sendMessage({ text: "hello" });
  const [sent, first] = chat.messages;
  await chat.regenerate();
  console.log("anew:", chat.status, chat.messages.length, chat.messages.at(-1).id !== first.id);
  await chat.sendMessage({ text: "think" });
  await chat.sendMessage({ text: "something else", messageId: sent.id });
  show("edited", chat);
  const kept = await (await fetch(`${api}/anew`)).json();
  console.log("kept:", kept.length, kept[1].id === chat.messages[1].id);
}
{
  const passing = [];
  const chat = make("tool", { onData: (d) => passing.push(d.type), sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
  await chat.sendMessage({ text: "tool" });
  show("tool", chat);
  console.log("data:", [...new Set(passing)].sort().join(" "));
}
{
  const errors = [];
  const chat = make("fail", { onError: (e) => errors.push(e.message) });
  await chat.sendMessage({ text: "fail" });
  console.log("fail:", chat.status, errors.length, errors[0]);
  const bad = make("bad", { query: "?agent=none", onError: (e) => errors.push(e.message) });
  await bad.sendMessage({ text: "hello" });
  console.log("refused:", bad.status, errors[1]);
}
{
  const clientTools = [{ name: "where", description: "Where the person is", inputSchema: { type: "object" } }];
  const chat = make("client", { body: { clientTools }, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
  await chat.sendMessage({ text: "client" });
  const call = chat.messages.at(-1).parts.find((p) => p.type === "dynamic-tool");
  const add = (chat.addToolOutput ?? chat.addToolResult).bind(chat);
  add({ tool: "where", toolCallId: call.toolCallId, output: "Berlin" });
  await chat.settled(says("Berlin"));
  show("client tool", chat);
}
{
  const chat = make("question", { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
  await chat.sendMessage({ text: "question" });
  const call = chat.messages.at(-1).parts.find((p) => p.type === "dynamic-tool");
  (chat.addToolOutput ?? chat.addToolResult).call(chat, { tool: call.toolName, toolCallId: call.toolCallId, output: { answers: { "Which?": "B" } } });
  await chat.settled(says("chose"));
  console.log("question:", chat.status, chat.messages.at(-1).parts.some(says("Which? B")));
}
for (const yes of [true, false]) {
  const id = `approval-${yes}`;
  const when = major === "5" ? lastAssistantMessageIsCompleteWithToolCalls : ai.lastAssistantMessageIsCompleteWithApprovalResponses;
  const chat = make(id, { query: `?agent=asker&version=${major}`, sendAutomaticallyWhen: when });
  await chat.sendMessage({ text: "ask" });
  const call = chat.messages.at(-1).parts.find((p) => p.type === "dynamic-tool");
  if (major === "5") (chat.addToolOutput ?? chat.addToolResult).call(chat, { tool: "Write", toolCallId: call.toolCallId, output: { approved: yes } });
  else await chat.addToolApprovalResponse({ id: call.approval.id, approved: yes });
  await chat.settled(says("Written"));
  show(id, chat);
}
{ // a page that is loaded again in the middle of a message
  const first = make("reload");
  const sent = first.sendMessage({ text: "slow" });
  await first.until(says("three"));
  await first.stop();
  await sent;
  const messages = await (await fetch(`${api}/reload`)).json();
  const second = make("reload", { messages });
  await second.resumeStream();
  show("reload", second);
  const again = make("reload", { messages: await (await fetch(`${api}/reload`)).json() });
  await again.resumeStream();
  show("nothing runs", again);
  await again.sendMessage({ text: "hello" });
  show("after a reload", again);
}
{ // stop ends the turn itself
  const chat = make("stop");
  const sent = chat.sendMessage({ text: "long" });
  await chat.until(says("word"));
  const stopped = await (await fetch(`${api}/stop/stop`, { method: "POST" })).json();
  await sent;
  console.log("stop:", stopped.stopped, chat.status, chat.messages.at(-1).metadata.state);
}
{ // the server dies in the middle of a message; the test starts it again
  const errors = [];
  const chat = make("killed", { onError: (e) => errors.push(e) });
  const sent = chat.sendMessage({ text: "slow" });
  await chat.until(says("three"));
  console.log("KILL");
  await sent;
  console.log("killed:", chat.status, errors.length);
  for await (const _ of process.stdin) break; // the server is back
  const back = make("killed", { messages: await (await fetch(`${api}/killed`)).json() });
  await back.resumeStream();
  show("back", back);
}
