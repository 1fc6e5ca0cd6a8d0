import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { ApprovalRequestedJson } from "../gen/fairlead/session/v1/event_pb.js";
import { Conversation, FairleadError, type Answer, type Fairlead, type ToolResult, type Turn, type TurnInput, type TurnView, type Waiting } from "./index.js";

/** A session in a component. */
export interface SessionState {
  /** The turns, each with its message and with what the agent says and does. */
  turns: TurnView[];
  /** Approvals and questions that wait for a person. */
  waiting: Waiting[];
  /** Whether a turn is queued, runs or waits. */
  busy: boolean;
  /** Whether the connection is broken. The hook connects again by itself. */
  broken: boolean;
  /** What went wrong for good, or with the last thing that the person did. */
  error?: FairleadError;
  send(input: TurnInput): Promise<Turn | undefined>;
  interrupt(): Promise<void>;
  approve(approval: ApprovalRequestedJson): Promise<void>;
  deny(approval: ApprovalRequestedJson, comment?: string): Promise<void>;
  answer(answer: Answer): Promise<void>;
  submitToolResult(callId: string, result: ToolResult): Promise<void>;
}

/**
 * Follows a session from its beginning, and shows it. Keep the client outside of the component, or in `useMemo`. While `session` is
 * undefined the hook waits for one.
 */
export function useSession(client: Fairlead, session: string | undefined): SessionState {
  const log = useRef(new Conversation());
  const [version, setVersion] = useState(0);
  const [broken, setBroken] = useState(false);
  const [error, setError] = useState<FairleadError>();

  useEffect(() => {
    const mine = (log.current = new Conversation());
    const stop = new AbortController();
    setVersion((v) => v + 1);
    setBroken(false);
    setError(undefined);
    const read = async () => {
      try {
        for await (const event of client.follow(session!, { signal: stop.signal, onBreak: () => setBroken(true) })) {
          mine.add(event);
          setBroken(false);
          setVersion((v) => v + 1);
        }
      } catch (e) {
        if (!stop.signal.aborted) setError(asError(e));
      }
    };
    if (session) void read();
    return () => stop.abort();
  }, [client, session]);

  const act = useCallback(
    async <T>(what: (session: string) => Promise<T>): Promise<T | undefined> => {
      if (!session) return undefined;
      try {
        setError(undefined);
        return await what(session);
      } catch (e) {
        setError(asError(e));
        return undefined;
      }
    },
    [session],
  );

  const actions = useMemo(
    () => ({
      send: (input: TurnInput) => act((s) => client.createTurn(s, input)),
      interrupt: async () => void (await act((s) => client.interrupt(s))),
      approve: async (approval: ApprovalRequestedJson) => void (await act((s) => client.approve(s, approval))),
      deny: async (approval: ApprovalRequestedJson, comment?: string) => void (await act((s) => client.deny(s, approval, { comment }))),
      answer: async (answer: Answer) => void (await act((s) => client.answerQuestion(s, answer))),
      submitToolResult: async (callId: string, result: ToolResult) => void (await act((s) => client.submitToolResult(s, callId, result))),
    }),
    [client, act],
  );

  const view = useMemo(() => {
    const turns = log.current.turns;
    const busy = turns.some((t) => ["TURN_STATE_QUEUED", "TURN_STATE_RUNNING", "TURN_STATE_WAITING"].includes(t.state));
    return { turns, waiting: log.current.waiting, busy };
  }, [version]);

  return { ...view, broken, error, ...actions };
}

function asError(e: unknown): FairleadError {
  return e instanceof FairleadError ? e : new FairleadError({ message: e instanceof Error ? e.message : String(e) }, 0, "", 0, { cause: e });
}
