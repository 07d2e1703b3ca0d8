// Users: a server stores what it needs to check a password, and not the password itself.

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { saslprep } from "@mongodb-js/saslprep";

/** Rounds of PBKDF2, as many as a MongoDB server uses. */
const ITERATIONS = 15_000;
const SALT_BYTES = 28;

/** What SCRAM-SHA-256 stores for a user. */
export interface Credentials {
  salt: Uint8Array;
  iterations: number;
  storedKey: Uint8Array;
  serverKey: Uint8Array;
}

/** Where users are looked up. */
export interface Users {
  find(name: string): Credentials | undefined;
  names(): string[];
}

export const hmac = (key: Uint8Array, text: string): Uint8Array => createHmac("sha256", key).update(text).digest();
export const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

/**
 * Creates credentials from a password.
 *
 * @throws TypeError if the password is empty, or has characters that SASLprep refuses
 */
export function credentialsOf(password: string): Credentials {
  if (typeof password !== "string" || password === "") throw new TypeError("A password must be a non-empty string");
  let prepared: string;
  try {
    prepared = saslprep(password);
  } catch (cause) {
    throw new TypeError(`The password has characters that passwords may not have: ${(cause as Error).message}`, { cause });
  }
  const salt = randomBytes(SALT_BYTES);
  const salted = pbkdf2Sync(prepared, salt, ITERATIONS, 32, "sha256");
  return { salt, iterations: ITERATIONS, storedKey: sha256(hmac(salted, "Client Key")), serverKey: hmac(salted, "Server Key") };
}

/** Users that a program names, with their passwords. */
export function givenUsers(passwords: Readonly<Record<string, string>>): Users {
  const known = new Map(Object.entries(passwords).map(([name, password]) => [name, credentialsOf(password)]));
  return { find: (name) => known.get(name), names: () => [...known.keys()] };
}
