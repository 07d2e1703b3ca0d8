// Bytes to text.

import type { InputFile } from "../formats/model.js";

const UTF8 = "utf-8";

export interface PieceDecoder {
  push(bytes: Uint8Array): string;
  end(): string;
}

/** Decodes a file piece by piece. Bytes that are invalid in the encoding are an error, because replacing them would lose data. */
export function decoderOf(file: InputFile, encoding?: string): PieceDecoder {
  const wanted = encoding ?? markedEncoding(file.beginning) ?? UTF8;
  const decoder = new TextDecoder(wanted, { fatal: true });
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch (cause) {
      const hint = wanted === UTF8 ? "; --encoding says which it is, such as windows-1252" : "";
      throw new Error(`${file.name} is not text in the encoding ${wanted}${hint}`, { cause });
    }
  };
  return { push: decode, end: () => decode() };
}

/** The encoding that a byte order mark indicates. */
function markedEncoding([first, second]: Uint8Array): string | undefined {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return undefined;
}
