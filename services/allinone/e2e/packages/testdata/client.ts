// Drives @fairlead/client, as it was installed from its package, against a server that the test kills at the line KILL.
import { createInterface } from "node:readline";
import {
  AuthenticationError, ConnectionError, Conversation, Fairlead, InvalidRequestError, NotFoundError, StateError, type Event, type EventOf, type TurnInput,
} from "@fairlead/client";

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const killed = async () => { console.log("KILL"); await input.next(); };
const client = new Fairlead({ maxRetries: 60 });
const texts = (c: Conversation) => c.turns.flatMap((t) => t.parts).map((p) => (p.type === "tool" ? `[${p.tool} ${p.outcome}]` : p.text)).join("|");
const fault = (p: Promise<unknown>) => p.then(() => "no error", (e) => e);

// Runs a turn, answers with what act does, and returns what a person sees.
async function turn(session: string, text: TurnInput, act: (e: Event) => Promise<unknown> | void = () => {}): Promise<string> {
  const c = new Conversation();
  for await (const event of client.run(session, text)) {
    c.add(event);
    await act(event);
  }
  return `${c.turns.at(-1)!.state} ${texts(c)}`;
}

const session = (await client.createSession({ agent: "helper", title: "A title", labels: { team: "x" } })).name!;
console.log("plain:", await turn(session, "plain"));
console.log("again:", (await client.getSession(session)).title, (await client.listTurns(session)).turns!.length, (await client.listMessages(session)).messages!.length);

const asker = (await client.createSession("coder")).name!;
let asked: EventOf<"approval.requested">["data"] | undefined;
const decide = (yes: boolean) => async (e: Event) => {
  if (e.type !== "approval.requested") return;
  asked = e.data;
  await (yes ? client.approve(asker, e.data) : client.deny(asker, e.data, { comment: "Not now." }));
};
console.log("approved:", await turn(asker, "hello", decide(true)));
const again = await fault(client.deny(asker, asked!));
console.log("refused too late:", again instanceof StateError, again.code, again.reason);
console.log("denied:", await turn(asker, "hello", decide(false)));
const listed = await turn(asker, "hello", async (e) => {
  if (e.type !== "turn.waiting") return;
  const [approval] = (await client.listApprovals({ session: asker })).approvals!;
  await client.approve(asker, approval!);
});
console.log("approved from the list:", listed);

const where = { text: "where", clientTools: [{ name: "where", description: "Where the person is", inputSchemaJson: '{"type":"object"}' }] };
let call: EventOf<"tool_call.arguments">["data"] | undefined;
console.log("a tool of the client:", await turn(session, where, (e) => {
  if (e.type === "tool_call.arguments") call = e.data;
  if (e.type === "turn.waiting") return client.submitToolResult(session, call!.callId!, `Berlin ${call!.argumentsJson}`);
}));
console.log("a question:", await turn(session, "question", (e) => {
  if (e.type === "question.requested") {
    return client.answerQuestion(session, { callId: e.data.callId, questionId: e.data.question!.id, action: "QUESTION_ACTION_ACCEPT", contentJson: '{"answers":{"Which?":"B"}}' });
  }
}));
console.log("interrupted:", (await turn(session, "long", (e) => (e.type === "text.delta" ? client.interrupt(session).then(() => {}) : undefined))).split(" ")[0]);
console.log("failed:", (await turn(session, "fail")).trim());

// The server is killed in the middle of a message, and the iterator goes on.
const slow = (await client.createSession("helper")).name!;
const c = new Conversation();
let last = 0, gaps = 0, breaks = 0, kills = 0;
const begun = await client.createTurn(slow, "slow");
for await (const event of client.follow(slow, { until: begun.name, onBreak: () => breaks++ })) {
  if (event.firstSeq !== last + 1) gaps++;
  last = event.seq;
  c.add(event);
  if (kills === 0 && texts(c).includes("three")) { kills++; await killed(); }
}
console.log("killed:", texts(c), "gaps", gaps, "breaks", breaks > 0);

// The same events once more, from any place.
const whole: Event[] = [];
for await (const event of client.follow(slow, { until: begun.name })) whole.push(event);
const half = whole[Math.floor(whole.length / 2)]!.seq;
const rest: Event[] = [];
for await (const event of client.follow(slow, { until: begun.name, afterSeq: half })) rest.push(event);
console.log("resumed:", JSON.stringify(rest) === JSON.stringify(whole.filter((e) => e.seq > half)));

// A message that is sent while the server is down arrives once.
const restarted = killed();
const sent = await client.createTurn(slow, "while it is down");
await restarted;
for await (const _ of client.follow(slow, { until: sent.name, afterSeq: Number(sent.afterSeq) }));
console.log("sent while it was down:", (await client.listTurns(slow)).turns!.length, (await client.getTurn(sent)).finalText);

// Stopping.
const stop = new AbortController();
const stopped = await fault((async () => { for await (const event of client.follow(slow, { signal: stop.signal })) if (event.seq === whole.at(-1)!.seq) stop.abort(); })());
console.log("aborted:", stopped.name);
for await (const _ of client.follow(slow)) break;
console.log("left: true");

// Mistakes.
const bad = await fault(client.createSession({ agent: "No Such" }));
console.log("bad input:", bad instanceof InvalidRequestError, bad.code, bad.reason, bad.fields[0].field, bad.httpStatus, bad.requestId !== "");
const unknown = await fault(client.createTurn(session, ""));
console.log("bad turn:", unknown.reason, unknown.fields[0].field);
const none = await fault((async () => { for await (const _ of client.follow("sessions/none")); })());
console.log("no session:", none instanceof NotFoundError, none.reason);
const nowhere = await fault(new Fairlead({ baseURL: "http://127.0.0.1:1", maxRetries: 0 }).getSession(session));
console.log("no server:", nowhere instanceof ConnectionError, nowhere.hint);
const all: string[] = [];
for await (const s of client.eachSession({ pageSize: 1 })) all.push(s.name!);
await client.deleteSession(session);
console.log("sessions:", all.length, (await fault(client.getSession(session))).reason);

// A wrong key, at a server with users.
const guarded = process.env.GUARDED!;
const wrong = await fault(new Fairlead({ baseURL: guarded, apiKey: "fl_wrong" }).createSession());
console.log("wrong key:", wrong instanceof AuthenticationError, wrong.code, wrong.httpStatus, wrong.hint);
const follower = await fault((async () => { for await (const _ of new Fairlead({ baseURL: guarded, apiKey: "fl_wrong" }).follow("sessions/s1")); })());
console.log("wrong key, following:", follower instanceof AuthenticationError);
const right = new Fairlead({ baseURL: guarded, apiKey: process.env.GUARDED_KEY });
console.log("right key:", (await right.createSession()).user);
process.exit(0);
