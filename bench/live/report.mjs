// The tables of the benchmark of the live tail, in Markdown.

const PLACES = { chromium: "Chromium, IndexedDB", sqlite: "Node, SQLite", memory: "Node, memory" };
const thousands = (n) => Math.round(n).toLocaleString("en").replaceAll(",", " ");
const ms = (value) => (value === undefined ? "–" : value < 1 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0));

function table(title, head, rows) {
  console.log(`\n${title}\n`);
  for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
}

/** One case of one place: the times of the writing context and of a second one. */
export function comparison({ task, place, rows, perCommit, own, second, records }) {
  const other = new Map(second.map((row) => [row.question, row]));
  const cells = (row) => (row ? [ms(row.live), ms(row.folded), `**${row.ratio.toFixed(1)}**`] : ["–", "–", "–"]);
  const stored = records === undefined ? "" : `, ${thousands(records)} journal records`;
  table(
    `**${PLACES[place]}**, ${task}: ${thousands(rows)} rows in ${thousands(rows / perCommit)} commits${stored}; milliseconds`,
    ["question", "in journals", "in buckets", "ratio", "second context: in journals", "in buckets", "ratio"],
    own.map((row) => [row.question, ...cells(row), ...cells(other.get(row.question))]),
  );
}

/** Times in a growing database that is never flushed. */
export function growing({ place, sizes }) {
  const most = (question) => Math.max(...sizes.map(({ times }) => times[question]));
  const [{ times: smallest }] = sizes;
  table(
    `**${PLACES[place]}**, growth without a flush, 20 sensors, 20 rows a commit; milliseconds`,
    ["question", ...sizes.map(({ rows }) => `${thousands(rows)} rows`), "most / first"],
    [
      ...Object.keys(smallest).map((question) => [
        question,
        ...sizes.map(({ times }) => ms(times[question])),
        (most(question) / smallest[question]).toFixed(1),
      ]),
      ["journal records", ...sizes.map(({ records }) => (records === undefined ? "–" : thousands(records))), ""],
      ["points a second since the last size", ...sizes.map(({ rate }) => thousands(rate * 1000)), ""],
    ],
  );
}

export function rates(all) {
  table(
    "**Ingest**, 60 000 rows, 20 a commit",
    ["place", "points a second", "with a flush behind it", "last tenth / second tenth", "a commit in bare puts of 1 KiB"],
    all.map(({ place, rate, settled, late, puts }) => [PLACES[place], thousands(rate * 1000), thousands(settled * 1000), late.toFixed(2), puts?.toFixed(2) ?? "–"]),
  );
}

export function folding(all) {
  table(
    "**Folds beside inserts**, 60 000 rows, 20 a commit, as fast as they are taken",
    ["place", "folded by itself, points a second", "never folded", "ratio", "journal records left: folded", "never folded"],
    all.map(({ place, folded, unfolded, ratio, records }) => [
      PLACES[place],
      thousands(folded * 1000),
      thousands(unfolded * 1000),
      `**${ratio.toFixed(2)}**`,
      ...[records.folded, records.unfolded].map((left) => (left === undefined ? "–" : thousands(left))),
    ]),
  );
}

export function bytes(all) {
  const fixed = (value) => (value === undefined ? "–" : value.toFixed(1));
  const parts = (of) => (of ? `${fixed(of.all)} (${fixed(of.journal)} + ${fixed(of.buckets + of.index)} + ${fixed(of.others)})` : "–");
  table(
    "**Bytes a point**: keys and values that go to the storage (journal + buckets and index + others), and what lies on the disk",
    ["place", "task", "rows", "written, no flush", "written, flushed", "on disk, no flush", "on disk, flushed"],
    all.map(({ place, task, rows, before, after, disk, diskFolded }) => [
      PLACES[place],
      task,
      thousands(rows),
      parts(before),
      parts(after),
      place === "sqlite" ? "–" : fixed(disk),
      fixed(place === "sqlite" ? disk : diskFolded),
    ]),
  );
}

const MODES = { journals: "timepail, never flushed", buckets: "timepail, flushed once a second", drawing: "drawing only, the same picture" };

export function pictures(all, seconds) {
  table(
    `**Dashboard page**, Chromium: the last five minutes of 20 sensors by uPlot, 200 points a second coming in, 60 000 rows of history; ${seconds} s each`,
    [
      "a picture",
      "rows",
      "frames a second",
      "longest frame, ms",
      "pictures a second",
      "asking, ms: median / 95 %",
      "a commit, ms",
      "commits a second",
      "long tasks a second",
      "their share of the time",
      "longest, ms",
    ],
    all.map((of) => [
      of.everyMs === 0 ? "every frame" : `every ${of.everyMs} ms`,
      MODES[of.mode],
      of.framesPerSecond.toFixed(1),
      ms(of.longestFrame),
      of.picturesPerSecond.toFixed(1),
      of.mode === "drawing" ? "–" : `${ms(of.ask)} / ${ms(of.askMost)}`,
      ms(of.insert),
      of.commitsPerSecond.toFixed(1),
      (of.longTasks / seconds).toFixed(1),
      `${((of.longTaskMs / seconds / 1000) * 100).toFixed(0)} %`,
      ms(of.longestTask),
    ]),
  );
}

export function others(tasks) {
  const names = Object.keys(Object.values(tasks)[0]);
  const own = names[0];
  const cell = (of, name) => (of[name] === undefined ? "–" : name === own ? ms(of[name]) : `${ms(of[name])} (${Number((of[name] / of[own]).toPrecision(2))})`);
  table(
    "**Others**, Chromium, 60 000 rows of 20 sensors; milliseconds, ratio to timepail with its rows in journals in brackets",
    ["task", ...names],
    Object.entries(tasks).map(([task, of]) => [task, ...names.map((name) => cell(of, name))]),
  );
}
