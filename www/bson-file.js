// Files of concatenated BSON documents, as mongodump writes and mongorestore reads them.

import { deserialize, serialize } from "bson";

const DOCUMENT_MAX = 16 * 1024 * 1024 + 16 * 1024;
/** Promotes nothing, so that a number keeps its type: 32 bits, 64 bits or a double. */
export const AS_STORED = { promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true };

/** Bytes of documents that were read with `AS_STORED`. */
export const toBson = (document) => serialize(document, { ignoreUndefined: false });

/** The documents of a file, one after the other: `{ document, end }`, where `end` is the position after the document. */
export async function* documentsOf(file) {
  let rest = new Uint8Array();
  let start = 0;
  for await (const chunk of piecesOf(file)) {
    const bytes = new Uint8Array(rest.length + chunk.length);
    bytes.set(rest);
    bytes.set(chunk, rest.length);
    const view = new DataView(bytes.buffer);
    let at = 0;
    while (at + 4 <= bytes.length) {
      const size = view.getInt32(at, true);
      if (size < 5 || size > DOCUMENT_MAX) throw new Error(`${file.name} is not valid BSON at byte ${start + at}.`);
      if (at + size > bytes.length) break;
      yield { document: parse(bytes.subarray(at, at + size), file, start + at), end: start + at + size };
      at += size;
    }
    rest = bytes.slice(at);
    start += at;
  }
  if (rest.length > 0) throw new Error(`${file.name} ends in the middle of a document, at byte ${start + rest.length}.`);
}

function parse(bytes, file, at) {
  try {
    return deserialize(bytes, AS_STORED);
  } catch (error) {
    throw new Error(`${file.name} is not valid BSON at byte ${at}: ${error.message}`);
  }
}

async function* piecesOf(file) {
  const reader = file.stream().getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}
