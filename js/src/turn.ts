// Turns of the event loop: what the page, its timers and its messages get while the engine works.

/**
 * Returns a promise that resolves when the event loop has had a turn; timers would be late by milliseconds. `undefined` where there is no such way.
 *
 * Not `scheduler.yield`: it goes on before any timer or message of the page, so that these would wait until the work is done, and with them whoever wants to abort it.
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
          // An open port would keep some runtimes from ending.
          port1.close();
          resolve();
        };
        port2.postMessage(0);
      }))
  );
}
