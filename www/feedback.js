// Shows results and errors in a toast, and runs work in order.

const toast = document.getElementById("toast");
const [message, dismiss] = toast.children;
let timer;

/** Shows a sentence for a few seconds. */
export function say(text) {
  show(text, false);
  timer = setTimeout(() => (toast.hidden = true), 6000);
}

/** Shows an error until it is dismissed. Errors of the database carry the server's code and its name. */
export function showError(error) {
  show(error.codeName ? `${error.codeName} (code ${error.code}): ${error.message}` : error.message, true);
  console.warn(error);
}

function show(text, isError) {
  clearTimeout(timer);
  message.textContent = text;
  toast.classList.toggle("error", isError);
  toast.hidden = false;
}

dismiss.addEventListener("click", () => (toast.hidden = true));

let queue = Promise.resolve();
let running = 0;

/** Runs `work` after all earlier work, and shows its error if it throws. */
export function inTurn(work) {
  running++;
  document.body.dataset.busy = "";
  queue = queue.then(work).catch(showError).finally(() => {
    if (--running === 0) delete document.body.dataset.busy;
  });
}

let pressed = false;

/** The same, but does nothing while such work waits or runs. For buttons whose second press should have no effect. */
export function unlessBusy(work) {
  if (pressed) return;
  pressed = true;
  inTurn(async () => {
    try {
      await work();
    } finally {
      pressed = false;
    }
  });
}
