// The progress bar of long work, with its Cancel button.

import { $ } from "./workspace.js";

/**
 * Runs `work(signal, progress)` and shows the bar. `progress(part, text)` moves it. A click on Cancel, or Escape, aborts the signal.
 * Resolves to `{ result, cancelled }`.
 */
export async function follow(label, work) {
  const stop = new AbortController();
  const before = document.activeElement;
  const cancel = () => stop.abort();
  const progress = (part, text) => {
    $("progress-bar").value = part;
    $("progress-text").textContent = text;
  };
  const escape = (event) => event.key === "Escape" && cancel();
  $("cancel").addEventListener("click", cancel);
  addEventListener("keydown", escape);
  $("progress-bar").setAttribute("aria-label", label);
  progress(0, "");
  $("progress").hidden = false;
  try {
    const result = await work(stop.signal, progress);
    return { result, cancelled: stop.signal.aborted };
  } finally {
    $("cancel").removeEventListener("click", cancel);
    removeEventListener("keydown", escape);
    if (document.activeElement === $("cancel")) before?.focus();
    $("progress").hidden = true;
  }
}

/** Lets the page draw and handle clicks before the work goes on. */
export const breathe = () => new Promise((resolve) => setTimeout(resolve));
