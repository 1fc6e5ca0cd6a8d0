import type { ApprovalRequestedJson, QuestionRequestedJson } from "../gen/fairlead/session/v1/event_pb.js";
import type { ToolOutcomeJson } from "../gen/fairlead/session/v1/message_pb.js";
import type { Content, TurnState } from "./types.js";
import type { Event } from "./events.js";

/** A part of what an agent says. */
export type Part =
  | { type: "text" | "thinking"; text: string }
  | { type: "tool"; callId: string; tool: string; argumentsJson: string; outcome?: ToolOutcomeJson; content?: Content[] };

/** A turn as a person sees it: the message, and what the agent says and does. */
export interface TurnView {
  name: string;
  state: TurnState;
  content: Content[];
  parts: Part[];
  error?: { reason?: string; message?: string };
}

/** What waits for a person, with the turn that waits. */
export type Waiting = { turn: string; approval: ApprovalRequestedJson } | { turn: string; question: QuestionRequestedJson };

/**
 * What a session's log says. It takes the events of `follow` in any pieces: an event that repeats others takes their place, and what a
 * restarted step or a rewind makes void is dropped.
 */
export class Conversation {
  private events: Event[] = [];
  lastSeq = 0;

  add(event: Event): void {
    if (event.seq <= this.lastSeq) return;
    this.lastSeq = event.seq;
    while (this.events.length > 0 && this.events[this.events.length - 1]!.firstSeq >= event.firstSeq) this.events.pop();
    this.events.push(event);
    if (event.type === "step.restarted") {
      this.drop(event.data, (e) => e.turn === event.turn);
    } else if (event.type === "session.rewound") {
      const undone = event.data.undoneTurn;
      this.drop(event.data, (e) => !undone || e.turn === undone || this.steered(e.turn, undone));
    }
  }

  get turns(): TurnView[] {
    const turns = new Map<string, TurnView>();
    for (const e of this.events) {
      if (!e.turn) continue;
      let turn = turns.get(e.turn);
      if (!turn) turns.set(e.turn, (turn = { name: e.turn, state: "TURN_STATE_QUEUED", content: [], parts: [] }));
      show(turn, e);
    }
    return [...turns.values()];
  }

  get waiting(): Waiting[] {
    const waiting = new Map<string, Waiting>();
    for (const e of this.events) {
      if (e.type === "approval.requested") waiting.set(e.data.callId!, { turn: e.turn, approval: e.data });
      else if (e.type === "question.requested") waiting.set(e.data.callId!, { turn: e.turn, question: e.data });
      else if (e.type === "approval.resolved" || e.type === "question.resolved" || e.type === "tool_call.finished") waiting.delete(e.data.callId!);
      else if (e.type === "turn.finished") for (const [id, w] of waiting) if (w.turn === e.turn) waiting.delete(id);
    }
    return [...waiting.values()];
  }

  private drop(range: { voidFirstSeq?: string; voidLastSeq?: string }, of: (e: Event) => boolean): void {
    const first = Number(range.voidFirstSeq ?? 0), last = Number(range.voidLastSeq ?? 0);
    this.events = this.events.filter((e) => e.firstSeq < first || e.seq > last || e.type.startsWith("turn.") || !of(e));
  }

  private steered(turn: string, into: string): boolean {
    return this.events.some((e) => e.type === "turn.steered" && e.turn === turn && e.data.into === into);
  }
}

function show(turn: TurnView, e: Event): void {
  const call = (id?: string) => turn.parts.find((p) => p.type === "tool" && p.callId === id) as Extract<Part, { type: "tool" }> | undefined;
  switch (e.type) {
    case "turn.queued":
      turn.content = e.data.content ?? [];
      break;
    case "turn.started":
    case "turn.resumed":
      turn.state = "TURN_STATE_RUNNING";
      break;
    case "turn.waiting":
      turn.state = "TURN_STATE_WAITING";
      break;
    case "turn.finished":
      turn.state = e.data.state ?? turn.state;
      turn.error = e.data.error;
      break;
    case "text.started":
    case "thinking.started":
      turn.parts.push({ type: e.type === "text.started" ? "text" : "thinking", text: "" });
      break;
    case "text.delta":
    case "thinking.delta": {
      const type = e.type === "text.delta" ? "text" : "thinking";
      let part = turn.parts.at(-1);
      if (part?.type !== type) turn.parts.push((part = { type, text: "" }));
      part.text += e.data.text ?? "";
      break;
    }
    case "tool_call.started":
      turn.parts.push({ type: "tool", callId: e.data.callId ?? "", tool: e.data.tool ?? "", argumentsJson: "" });
      break;
    case "tool_call.arguments": {
      const part = call(e.data.callId);
      if (part) part.argumentsJson = e.data.argumentsJson ?? "";
      break;
    }
    case "tool_call.finished": {
      const part = call(e.data.callId);
      if (part) Object.assign(part, { outcome: e.data.outcome, content: e.data.content });
    }
  }
}
