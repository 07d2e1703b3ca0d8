// A reporter for node:test that counts tests and nothing else; a suite or a parent only repeats what its tests said. One JSON line at the end.

export default async function* count(events) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.skip !== undefined || data.todo !== undefined) counts.skipped++;
    else if (type === "test:fail") counts.failed += data.details?.error?.failureType === "subtestsFailed" ? 0 : 1;
    else if (data.details?.type !== "suite") counts.passed++;
  }
  yield `${JSON.stringify(counts)}\n`;
}
