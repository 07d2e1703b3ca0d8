// Counts the tasks that block the page for more than 50 ms, in browsers that report them.

/** `{ count, longest }` since the page was opened; `count` is undefined if the browser does not report them. */
export const longTasks = { count: undefined, longest: 0 };

if (globalThis.PerformanceObserver?.supportedEntryTypes.includes("longtask")) {
  longTasks.count = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      longTasks.count++;
      longTasks.longest = Math.max(longTasks.longest, duration);
    }
  }).observe({ type: "longtask", buffered: true });
}
