// What the API takes and returns, as JSON. The types are generated from the protos.
export type { ContentJson as Content } from "../gen/fairlead/common/v1/content_pb.js";
export type { QuestionJson as Question } from "../gen/fairlead/common/v1/question_pb.js";
export type { PendingApprovalJson as PendingApproval } from "../gen/fairlead/session/v1/approval_pb.js";
export type { MessageJson as Message } from "../gen/fairlead/session/v1/message_pb.js";
export type { SessionJson as Session } from "../gen/fairlead/session/v1/session_pb.js";
export type { TurnJson as Turn, TurnStateJson as TurnState } from "../gen/fairlead/session/v1/turn_pb.js";

import type { ContentJson } from "../gen/fairlead/common/v1/content_pb.js";
import type { AnswerQuestionRequestJson } from "../gen/fairlead/session/v1/approval_pb.js";
import type { CreateTurnRequestJson, ResolveApprovalRequestJson, SubmitToolResultRequestJson } from "../gen/fairlead/session/v1/session_service_pb.js";

/** A turn to create: text alone, or everything that the API takes. */
export type TurnInput = string | Omit<CreateTurnRequestJson, "parent" | "requestId">;

/** How an approval is answered besides yes or no. */
export type ApprovalOptions = Omit<ResolveApprovalRequestJson, "parent" | "requestId" | "callId" | "digest" | "approved">;

/** A question that is answered. */
export type Answer = Omit<AnswerQuestionRequestJson, "parent" | "requestId">;

/** The result of a tool that the client ran: text alone, or contents. */
export type ToolResult = string | ContentJson[] | Omit<SubmitToolResultRequestJson, "parent" | "requestId" | "callId">;

/** What all calls take. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** What calls that change something take. */
export interface ChangeOptions extends CallOptions {
  /** Repeating a call with the same key has no second effect. The client makes one if there is none. */
  idempotencyKey?: string;
}

/** A page of a list. */
export interface PageOptions extends CallOptions {
  pageSize?: number;
  pageToken?: string;
}
