// Turns of the event loop, in which the page, its timers and its messages run while the engine works.

/**
 * Returns a function whose promise resolves after a turn of the event loop; timers would be late by milliseconds. Returns `undefined` if the runtime cannot do this.
 *
 * `scheduler.yield` would resume before timers and messages run, so an abort could not arrive.
 */
export function hostTurn(): (() => Promise<void>) | undefined {
  const { setImmediate, MessageChannel } = globalThis as Partial<typeof globalThis>;
  if (setImmediate) return () => new Promise((resolve) => void setImmediate(resolve));
  return (
    MessageChannel &&
    (() =>
      new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
          // An open port would keep some runtimes alive.
          port1.close();
          resolve();
        };
        port2.postMessage(0);
      }))
  );
}
