// Counts the tasks that kept the page from answering for more than 50 ms, where the browser tells of them.

/** `{ count, longest }` since the page was opened; `count` is undefined where nobody knows. */
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
