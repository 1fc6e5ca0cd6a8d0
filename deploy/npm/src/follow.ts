import { ConnectionError, FairleadError, toError } from "./errors.js";
import { toEvent, type Event } from "./events.js";
import { delay, pause, reason, send, type Connection } from "./http.js";
import { frames } from "./sse.js";

/** How to follow a session. */
export interface FollowOptions {
  /** Shows only what comes after this sequence number. */
  afterSeq?: number;
  /** Ends after the end of this turn, as `sessions/{session}/turns/{turn}`. Otherwise the iterator goes on until it is stopped. */
  until?: string;
  signal?: AbortSignal;
  /** Is told of each break. The iterator goes on by itself. */
  onBreak?: (error: FairleadError, attempt: number) => void;
  /** A connection that is silent for so long is taken for broken. The server says something each 5 seconds. */
  silenceMs?: number;
}

/**
 * The events of a session, those that are there and those that come. When the connection breaks it goes on after the last
 * event that it has shown, as often and as long as it takes. It throws what trying again does not mend.
 */
export async function* follow(c: Connection, session: string, options: FollowOptions = {}): AsyncGenerator<Event, void> {
  const { until, signal, onBreak } = options;
  let last = options.afterSeq ?? 0;
  for (let attempt = 0; ; attempt++) {
    let broken: FairleadError;
    try {
      for await (const event of connected(c, session, last, options)) {
        if (event.seq <= last) continue;
        last = event.seq;
        attempt = 0;
        yield event;
        if (until && event.type === "turn.finished" && event.turn === until) return;
      }
      broken = new ConnectionError("the server ended the stream");
    } catch (e) {
      signal?.throwIfAborted();
      broken = e instanceof FairleadError ? e : new ConnectionError(`the stream broke off: ${reason(e)}`, e);
      if (!broken.retryable) throw broken;
    }
    onBreak?.(broken, attempt);
    await pause(delay(attempt, broken), signal);
  }
}

/** The events of one connection. */
async function* connected(c: Connection, session: string, after: number, options: FollowOptions): AsyncGenerator<Event> {
  const silence = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, silence.signal]) : silence.signal;
  const ms = options.silenceMs ?? 30000;
  const silent = () => silence.abort(new ConnectionError(`nothing came for ${ms} ms`));
  let timer = setTimeout(silent, ms);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(silent, ms);
  };
  try {
    const answer = await send(c, { method: "GET", path: `/v1/${session}/events:stream`, query: { after_seq: after }, headers: { accept: "text/event-stream" }, signal });
    for await (const f of frames(answer.body!)) {
      alive();
      if (!f.data) continue;
      const json = JSON.parse(f.data);
      if (f.event === "stream.error") throw toError(json);
      clearTimeout(timer); // the caller may take its time
      yield toEvent(f.event, json);
      alive();
    }
  } finally {
    clearTimeout(timer);
    silence.abort(); // closes the connection, wherever the caller stopped
  }
}
