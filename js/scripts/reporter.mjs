// A reporter for node:test that only counts tests. It writes one line of JSON at the end: a list with an entry for each top-level suite, and one for the tests outside
// of suites. Suites and parents are not counted, because they repeat the results of their tests.

const none = () => ({ passed: 0, failed: 0, skipped: 0 });

export default async function* count(events) {
  const suites = [];
  let counts = none();
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { nesting, name, details } = data;
    if (data.skip !== undefined || data.todo !== undefined) counts.skipped++;
    else if (type === "test:fail") counts.failed += details?.error?.failureType === "subtestsFailed" ? 0 : 1;
    else if (details?.type !== "suite") counts.passed++;
    if (nesting > 0 || details?.type !== "suite") continue;
    suites.push({ name, ms: details.duration_ms, ...counts });
    counts = none();
  }
  suites.push(counts);
  yield `${JSON.stringify(suites)}\n`;
}
