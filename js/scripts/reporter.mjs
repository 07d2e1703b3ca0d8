// A reporter for node:test that only counts tests, and writes one line of JSON at the end. Suites and parents are not counted, because they repeat the results of their tests.

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
