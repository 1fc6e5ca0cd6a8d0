import { ConnectionError, FairleadError, toError, type Status } from "./errors.js";

/** How to reach the server. */
export interface Connection {
  baseURL: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
  maxRetries: number;
}

/** A request. */
export interface Request {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | string[] | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request once. Throws a FairleadError unless the answer is one of success. */
export async function send(c: Connection, r: Request): Promise<Response> {
  const url = new URL(c.baseURL.replace(/\/+$/, "") + r.path);
  for (const [name, value] of Object.entries(r.query ?? {})) {
    for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined && v !== "") url.searchParams.append(name, String(v));
  }
  const init: RequestInit = { method: r.method, headers: { ...c.headers, ...r.headers }, signal: r.signal };
  if (r.body !== undefined) {
    init.body = JSON.stringify(r.body);
    (init.headers as Record<string, string>)["content-type"] = "application/json";
  }
  let answer: Response;
  try {
    answer = await c.fetch(url, init);
  } catch (e) {
    r.signal?.throwIfAborted();
    throw new ConnectionError(`${c.baseURL} cannot be reached: ${reason(e)}`, e);
  }
  if (answer.ok) return answer;
  const text = await answer.text().catch(() => "");
  throw toError(parse(text), answer.status, answer.headers);
}

/** Sends a request, again while that may help, and returns the answer's JSON. */
export async function call<T>(c: Connection, r: Request): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      const text = await (await send(c, r)).text();
      return (text ? JSON.parse(text) : {}) as T;
    } catch (e) {
      r.signal?.throwIfAborted();
      const error = e instanceof FairleadError ? e : new ConnectionError(`the answer broke off: ${reason(e)}`, e);
      if (!error.retryable || attempt >= c.maxRetries) throw error;
      await pause(delay(attempt, error), r.signal);
    }
  }
}

/** How long to wait after a failed attempt, counted from 0. */
export function delay(attempt: number, error: FairleadError): number {
  return Math.max(error.retryAfterMs, Math.min(5000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2));
}

/** Waits; throws when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

function parse(text: string): Status {
  try {
    return JSON.parse(text) as Status;
  } catch {
    return { message: text.slice(0, 500) };
  }
}

/** What an error says, and what the error says that caused it. */
export function reason(e: unknown): string {
  const cause = e instanceof Error && e.cause instanceof Error ? `: ${e.cause.message}` : "";
  return (e instanceof Error ? e.message : String(e)) + cause;
}
