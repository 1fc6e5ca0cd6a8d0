export { Fairlead, type Options } from "./client.js";
export { Conversation, type Part, type TurnView, type Waiting } from "./conversation.js";
export {
  AuthenticationError, ConflictError, ConnectionError, FairleadError, InvalidRequestError, LimitError, NotFoundError, PermissionError, ServerError, StateError,
  UnavailableError, type FieldViolation,
} from "./errors.js";
export type { Event, EventName, EventOf } from "./events.js";
export type { FollowOptions } from "./follow.js";
export type * from "./types.js";
