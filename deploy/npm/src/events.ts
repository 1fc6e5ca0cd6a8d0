import { eventNames } from "../gen/fairlead/session/v1/event_names.js";
import type { EventJson } from "../gen/fairlead/session/v1/event_pb.js";

export type { EventName } from "../gen/fairlead/session/v1/event_names.js";

type Names = typeof eventNames;

interface Place {
  /** The last sequence number that the event covers: what a client resumes after. */
  seq: number;
  /** The first sequence number that the event covers. */
  firstSeq: number;
  /** When the event was committed, as RFC 3339 has it. */
  time: string;
  /** The turn, as `sessions/{session}/turns/{turn}`; empty for an event of the session itself. */
  turn: string;
  /** The step within the turn, from 1; 0 for an event of the turn itself. */
  step: number;
}

/** An event of a session's log: `type` says what `data` has. A newer server may send types that are not among these. */
export type Event = { [K in keyof Names]: Place & { type: Names[K]; data: NonNullable<EventJson[K]> } }[keyof Names];

/** The event of a type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;

const fields = new Map<string, keyof Names>(Object.entries(eventNames).map(([field, name]) => [name, field as keyof Names]));
const places = new Set(["firstSeq", "seq", "time", "turn", "step"]);

/** The event of a frame of the stream. */
export function toEvent(name: string, json: EventJson): Event {
  const field = fields.get(name) ?? (Object.keys(json).find((k) => !places.has(k)) as keyof Names | undefined);
  return {
    type: name,
    seq: Number(json.seq ?? 0),
    firstSeq: Number(json.firstSeq ?? 0),
    time: json.time ?? "",
    turn: json.turn ?? "",
    step: json.step ?? 0,
    data: (field && json[field]) ?? {},
  } as Event;
}
