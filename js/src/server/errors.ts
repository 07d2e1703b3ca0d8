// Errors of a server: a message that it cannot read, and a command that it refuses.

/** A message that is not one of the protocol. The connection ends. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}

/** A command is refused. The client gets the code. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly code: number;
  readonly codeName: string;

  constructor(code: number, codeName: string, message: string) {
    super(message);
    this.code = code;
    this.codeName = codeName;
  }

  /** The reply with this error. */
  get reply(): Record<string, unknown> {
    return { ok: 0, errmsg: this.message, code: this.code, codeName: this.codeName };
  }
}
