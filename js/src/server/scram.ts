// SCRAM-SHA-256 (RFC 7677), the side of the server.

import { randomBytes, timingSafeEqual } from "node:crypto";
import { CommandError } from "./errors.js";
import { hmac, sha256, type Credentials, type Users } from "./users.js";

export const MECHANISM = "SCRAM-SHA-256";

/** Every failure has the same error, so that a client cannot learn which users exist. */
const failed = (): CommandError => new CommandError(18, "AuthenticationFailed", "Authentication failed.");

/** For unknown users: a fixed salt per name, so that they cannot be distinguished from known ones. */
const secret = randomBytes(32);

function nobody(name: string): Credentials {
  const salt = hmac(secret, name).subarray(0, 28);
  return { salt, iterations: 15_000, storedKey: new Uint8Array(32), serverKey: new Uint8Array(32) };
}

/** One authentication: first message, proof, and possibly an empty last message. */
export class Conversation {
  readonly user: string;
  readonly #known: boolean;
  readonly #credentials: Credentials;
  readonly #nonce: string;
  /** The messages that the proof covers, without the last one. */
  readonly #begun: string;
  readonly #binding: string;
  readonly first: string;
  readonly skipsEmptyExchange: boolean;
  #isProven = false;

  /** Begins with the client's first message. */
  constructor(message: string, users: Users, skipsEmptyExchange: boolean) {
    this.skipsEmptyExchange = skipsEmptyExchange;
    const [, header, rest, name, nonce] = /^([ny],(?:a=[^,]*)?,)(n=([^,]*),r=([^,]+)(?:,.*)?)$/s.exec(message) ?? [];
    if (header === undefined || rest === undefined || name === undefined || nonce === undefined || /=(?!2C|3D)/.test(name)) throw failed();
    this.user = name.replaceAll("=2C", ",").replaceAll("=3D", "=");
    const found = users.find(this.user);
    this.#known = found !== undefined;
    this.#credentials = found ?? nobody(this.user);
    this.#nonce = nonce + randomBytes(24).toString("base64");
    this.#binding = Buffer.from(header).toString("base64");
    this.first = `r=${this.#nonce},s=${Buffer.from(this.#credentials.salt).toString("base64")},i=${this.#credentials.iterations}`;
    this.#begun = `${rest},${this.first}`;
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  /** Checks the client's proof, and gives the server's signature. */
  prove(message: string): string {
    const [, bare, binding, nonce, proof] = /^(c=([^,]*),r=([^,]*)),p=([A-Za-z0-9+/=]+)$/.exec(message) ?? [];
    if (bare === undefined || binding !== this.#binding || nonce !== this.#nonce || proof === undefined) throw failed();
    const { storedKey, serverKey } = this.#credentials;
    const signed = `${this.#begun},${bare}`;
    const signature = hmac(storedKey, signed);
    const given = Buffer.from(proof, "base64");
    if (given.length !== signature.length) throw failed();
    const clientKey = signature.map((byte, at) => byte ^ given[at]!);
    if (!timingSafeEqual(sha256(clientKey), storedKey) || !this.#known) throw failed();
    this.#isProven = true;
    return `v=${Buffer.from(hmac(serverKey, signed)).toString("base64")}`;
  }
}
