// Measurements of hosts after the devops use case (cpu only): ten usages of a processor, each a walk between 0 and 100 with two decimals.

import { START, STEP_MS, generator, times } from "./random.mjs";

export const USAGES = ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"].map((name) => `usage_${name}`);

const REGIONS = {
  "us-east-1": "abce",
  "us-west-1": "ab",
  "us-west-2": "abc",
  "eu-west-1": "abc",
  "eu-central-1": "ab",
  "ap-southeast-1": "ab",
  "ap-southeast-2": "ab",
  "ap-northeast-1": "ac",
  "sa-east-1": "abc",
};

function tagsOf(host, random) {
  const region = random.of(Object.keys(REGIONS));
  return {
    hostname: `host_${host}`,
    region,
    datacenter: region + random.of([...REGIONS[region]]),
    rack: `${random.below(100)}`,
    os: random.of(["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]),
    arch: random.of(["x64", "x86"]),
    team: random.of(["SF", "NYC", "LON", "CHI"]),
    service: `${random.below(20)}`,
    service_version: `${random.below(2)}`,
    service_environment: random.of(["production", "staging", "test"]),
  };
}

/** Steps are wide enough that most hosts are busy and idle within hours. */
function walk(rows, random) {
  const values = new Float64Array(rows);
  let state = random.next() * 100;
  for (let row = 0; row < rows; row++) {
    state = Math.min(100, Math.max(0, state + 3 * random.normal()));
    values[row] = Math.round(state * 100) / 100;
  }
  return values;
}

/** The use case: from `start` to before `end`, one measurement of `{ name, series: [{ tags, columns }] }`. */
export function devopsData({ hosts, hours }) {
  const time = times(hours);
  const series = Array.from({ length: hosts }, (_, host) => {
    const random = generator(`host ${host}`);
    const columns = { time };
    const tags = tagsOf(host, random);
    for (const usage of USAGES) columns[usage] = walk(time.length, random);
    return { tags, columns };
  });
  return { name: "devops", start: START, end: START + time.length * STEP_MS, measurements: [{ name: "cpu", series }] };
}
