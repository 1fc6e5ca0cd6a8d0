import type { ApprovalRequestedJson } from "../gen/fairlead/session/v1/event_pb.js";
import type { Event } from "./events.js";
import { follow, type FollowOptions } from "./follow.js";
import { call, type Connection, type Request } from "./http.js";
import type {
  Answer, ApprovalOptions, CallOptions, ChangeOptions, Message, PageOptions, PendingApproval, Session, ToolResult, Turn, TurnInput,
} from "./types.js";

/** How to reach a server. */
export interface Options {
  /** The address of REST; `FAIRLEAD_BASE_URL` or `http://127.0.0.1:8080` if missing. */
  baseURL?: string;
  /** An API key; `FAIRLEAD_API_KEY` if missing. A server on loopback without keys needs none. */
  apiKey?: string;
  /** Takes the place of the global fetch. */
  fetch?: typeof fetch;
  /** How often a call is tried again while the server cannot be reached; 5 if missing. */
  maxRetries?: number;
  headers?: Record<string, string>;
}

type Named = string | { name?: string };

const variable = (name: string): string | undefined =>
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;

/** A client of a Fairlead server. Sessions, turns and approvals are named as the server names them, such as `sessions/s1`. */
export class Fairlead {
  private readonly connection: Connection;

  constructor(options: Options = {}) {
    const key = options.apiKey ?? variable("FAIRLEAD_API_KEY");
    this.connection = {
      baseURL: options.baseURL ?? variable("FAIRLEAD_BASE_URL") ?? "http://127.0.0.1:8080",
      headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), ...options.headers },
      fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
      maxRetries: options.maxRetries ?? 5,
    };
  }

  /** Makes a session; of the agent's name alone, or of everything that the API takes. */
  createSession(session: Session | string = {}, options: ChangeOptions & { sessionId?: string } = {}): Promise<Session> {
    const body = typeof session === "string" ? { agent: session } : session;
    return this.change("POST", "/v1/sessions", body, options, { session_id: options.sessionId });
  }

  getSession(session: Named, options: CallOptions = {}): Promise<Session> {
    return this.request({ method: "GET", path: `/v1/${nameOf(session)}`, ...options });
  }

  /** A page of sessions; `eachSession` has all of them. */
  listSessions(options: PageOptions & { agent?: string; labels?: string[]; key?: string; archived?: boolean } = {}): Promise<{ sessions?: Session[]; nextPageToken?: string }> {
    const { agent, labels, key, archived } = options;
    return this.page("/v1/sessions", options, { agent, labels, key, archived });
  }

  async *eachSession(options: Parameters<Fairlead["listSessions"]>[0] = {}): AsyncGenerator<Session, void> {
    let pageToken = options.pageToken;
    do {
      const page = await this.listSessions({ ...options, pageToken });
      yield* page.sessions ?? [];
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  async deleteSession(session: Named, options: ChangeOptions = {}): Promise<void> {
    await this.change("DELETE", `/v1/${nameOf(session)}`, undefined, options);
  }

  /** A page of the conversation, the oldest message first. */
  listMessages(session: Named, options: PageOptions = {}): Promise<{ messages?: Message[]; nextPageToken?: string }> {
    return this.page(`/v1/${nameOf(session)}/messages`, options);
  }

  /** Sends a message, and returns its turn at once. */
  createTurn(session: Named, input: TurnInput, options: ChangeOptions = {}): Promise<Turn> {
    return this.change("POST", `/v1/${nameOf(session)}/turns`, typeof input === "string" ? { text: input } : input, options);
  }

  getTurn(turn: Named, options: CallOptions = {}): Promise<Turn> {
    return this.request({ method: "GET", path: `/v1/${nameOf(turn)}`, ...options });
  }

  listTurns(session: Named, options: PageOptions = {}): Promise<{ turns?: Turn[]; nextPageToken?: string }> {
    return this.page(`/v1/${nameOf(session)}/turns`, options);
  }

  /** The events of a session, those that are there and those that come, across breaks of the connection and of the server. */
  follow(session: Named, options: FollowOptions = {}): AsyncGenerator<Event, void> {
    return follow(this.connection, nameOf(session), options);
  }

  /** Sends a message, and follows its turn until its end. To stop reading stops nothing: `interrupt` does. */
  async *run(session: Named, input: TurnInput, options: ChangeOptions & Omit<FollowOptions, "until" | "afterSeq"> = {}): AsyncGenerator<Event, void> {
    const turn = await this.createTurn(session, input, options);
    yield* this.follow(session, { ...options, afterSeq: Number(turn.afterSeq ?? 0), until: turn.name });
  }

  /** Stops the active turn, or this one. The answer names the turn that is stopped, if there is one. */
  interrupt(session: Named, options: ChangeOptions & { turn?: string; cancelQueued?: boolean } = {}): Promise<{ turn?: string }> {
    const { turn, cancelQueued } = options;
    return this.change("POST", `/v1/${nameOf(session)}:interrupt`, { turn, cancelQueued }, options);
  }

  /** What waits for a person, in all sessions or in one. */
  listApprovals(options: PageOptions & { session?: string; user?: string } = {}): Promise<{ approvals?: PendingApproval[]; nextPageToken?: string }> {
    return this.page("/v1/approvals", options, { session: options.session, user: options.user });
  }

  /** Allows what an event `approval.requested` or an entry of `listApprovals` asks. */
  approve(session: Named, approval: ApprovalRequestedJson | PendingApproval, options: ChangeOptions & ApprovalOptions = {}): Promise<void> {
    return this.resolve(session, approval, true, options);
  }

  /** Refuses it. The model gets the comment. */
  deny(session: Named, approval: ApprovalRequestedJson | PendingApproval, options: ChangeOptions & Pick<ApprovalOptions, "comment"> = {}): Promise<void> {
    return this.resolve(session, approval, false, options);
  }

  /** Answers an event `question.requested`. */
  async answerQuestion(session: Named, answer: Answer, options: ChangeOptions = {}): Promise<void> {
    await this.change("POST", `/v1/${nameOf(session)}/questions:answer`, answer, options);
  }

  /** Returns the result of a tool that the client runs. */
  async submitToolResult(session: Named, callId: string, result: ToolResult, options: ChangeOptions = {}): Promise<void> {
    const body = typeof result === "string" ? { content: [{ text: { text: result } }] } : Array.isArray(result) ? { content: result } : result;
    await this.change("POST", `/v1/${nameOf(session)}/toolResults`, { ...body, callId }, options);
  }

  /** Makes any other request of the API. */
  request<T>(request: Request): Promise<T> {
    return call(this.connection, request);
  }

  private async resolve(session: Named, approval: { callId?: string; digest?: string }, approved: boolean, options: ChangeOptions & ApprovalOptions): Promise<void> {
    const { signal, idempotencyKey, ...rest } = options;
    const body = { ...rest, callId: approval.callId, digest: approval.digest, approved };
    await this.change("POST", `/v1/${nameOf(session)}/approvals:resolve`, body, { signal, idempotencyKey });
  }

  private change<T>(method: string, path: string, body: unknown, options: ChangeOptions, query?: Request["query"]): Promise<T> {
    const headers = { "idempotency-key": options.idempotencyKey ?? crypto.randomUUID() };
    return this.request({ method, path, body, query, headers, signal: options.signal });
  }

  private page<T>(path: string, options: PageOptions, query: Request["query"] = {}): Promise<T> {
    return this.request({ method: "GET", path, query: { ...query, page_size: options.pageSize, page_token: options.pageToken }, signal: options.signal });
  }
}

function nameOf(of: Named): string {
  const name = typeof of === "string" ? of : of.name;
  if (!name) throw new TypeError("a name is missing, such as sessions/s1: pass a session or a turn that the server has returned, or its name");
  return name.includes("/") ? name : `sessions/${name}`;
}
