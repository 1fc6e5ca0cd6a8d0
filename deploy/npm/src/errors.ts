/** A field of a request that is wrong, and what is wrong with it. */
export interface FieldViolation {
  field: string;
  description: string;
}

interface Detail {
  "@type"?: string;
  reason?: string;
  domain?: string;
  metadata?: Record<string, string>;
  fieldViolations?: FieldViolation[];
}

/** The google.rpc.Status that the server sends. */
export interface Status {
  code?: number;
  message?: string;
  details?: Detail[];
}

const codes = ["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"];

/** An error of Fairlead. Decide by its class, `code` and `reason`; `message` and `hint` are for people. */
export class FairleadError extends Error {
  /** What to do, unless the message says it. */
  readonly hint: string = "";
  /** Whether the same call may succeed later. */
  readonly retryable: boolean = false;
  /** The code, such as `NOT_FOUND`. */
  readonly code: string;
  /** Why, for programs, such as `SESSION_NOT_FOUND`. */
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Record<string, string>;
  /** The fields of the request that are wrong. */
  readonly fields: FieldViolation[];

  constructor(status: Status, readonly httpStatus = 0, readonly requestId = "", readonly retryAfterMs = 0, options?: ErrorOptions) {
    super(status.message || `the server answered with HTTP ${httpStatus}`, options);
    this.name = new.target.name;
    const info = status.details?.find((d) => d.reason);
    this.code = codes[status.code ?? 2] ?? "UNKNOWN";
    this.reason = info?.reason ?? "";
    this.domain = info?.domain ?? "";
    this.metadata = info?.metadata ?? {};
    this.fields = status.details?.flatMap((d) => d.fieldViolations ?? []) ?? [];
  }
}

/** The request is wrong; `fields` says where. */
export class InvalidRequestError extends FairleadError {
  override readonly hint: string = "Correct the request.";
}
/** The credential is missing or wrong. */
export class AuthenticationError extends FairleadError {
  override readonly hint: string = "Set apiKey, or the variable FAIRLEAD_API_KEY, to a valid key.";
}
/** The credential does not allow it. */
export class PermissionError extends FairleadError {
  override readonly hint: string = "Use the key of a user who may do this.";
}
/** There is no such thing, or it is another tenant's. */
export class NotFoundError extends FairleadError {}
/** It exists already, or another client was quicker. */
export class ConflictError extends FairleadError {
  override readonly hint: string = "Take another id or key, or read again and retry.";
}
/** The state does not allow it now. */
export class StateError extends FairleadError {}
/** A limit is reached. */
export class LimitError extends FairleadError {
  override readonly hint: string = "Wait and try again.";
  override readonly retryable: boolean = true;
}
/** The server cannot answer now. */
export class UnavailableError extends FairleadError {
  override readonly hint: string = "Try again with the same idempotency key.";
  override readonly retryable: boolean = true;
}
/** The server failed. */
export class ServerError extends FairleadError {
  override readonly hint: string = "Report the fault with requestId.";
}
/** No answer came. */
export class ConnectionError extends FairleadError {
  override readonly hint: string = "Check baseURL, and that the server runs.";
  override readonly retryable: boolean = true;
  constructor(message: string, cause?: unknown) {
    super({ code: 14, message }, 0, "", 0, { cause });
  }
}

const classes: Record<number, new (...args: ConstructorParameters<typeof FairleadError>) => FairleadError> = {
  3: InvalidRequestError, 4: UnavailableError, 5: NotFoundError, 6: ConflictError, 7: PermissionError, 8: LimitError, 9: StateError, 10: ConflictError,
  11: InvalidRequestError, 12: InvalidRequestError, 13: ServerError, 14: UnavailableError, 15: ServerError, 16: AuthenticationError,
};
const byHTTP: Record<number, number> = { 400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 429: 8, 502: 14, 503: 14, 504: 4 };

/** The error of a status, with the class of its code. */
export function toError(status: Status, httpStatus = 0, headers?: Headers): FairleadError {
  const code = status.code ?? byHTTP[httpStatus] ?? (httpStatus >= 500 ? 13 : 2);
  const wait = Number(headers?.get("retry-after") ?? 0) * 1000;
  return new (classes[code] ?? FairleadError)({ ...status, code }, httpStatus, headers?.get("x-request-id") ?? "", Number.isFinite(wait) ? wait : 0);
}
