// Assertions that run anywhere.

export function same(found: unknown, wanted: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

/** The error that `work` rejects with. */
export async function failure(work: Promise<unknown>): Promise<{ name: string; message: string; codeName?: string }> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error("It should have failed");
}
