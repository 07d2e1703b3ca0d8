// The data of the live tail benchmark: a plant whose sensors report in turn.

import { random } from "../data.js";

export const START = Date.UTC(2024, 0, 1);
export const timeseries = { timeField: "at", metaField: "sensor" };
const SITES = ["north", "east", "south", "west"];
/** One of this many rows is a spike, which the filter by value finds. */
const SPIKE_EVERY = 2000;
export const SPIKE = 500;

const cents = (x) => Math.round(x * 100) / 100;

/**
 * Endless seeded measurements: one of each of `series` sensors, `stepMs` apart, `perCommit` at a time. A commit of fewer rows than sensors continues with the
 * next sensor. Two plants of the same options give the same rows.
 */
export class Plant {
  constructor({ series = 20, perCommit = series, stepMs = 100, seed = 7 } = {}) {
    Object.assign(this, { series, perCommit, stepMs });
    this.rows = 0;
    this.sensors = Array.from({ length: series }, (_, i) => ({ id: `s${i}`, site: SITES[i % SITES.length] }));
    this.walks = Array.from({ length: series }, (_, i) => ({ value: 20 + (i % 20), pressure: 1000 }));
    this.random = random(seed);
  }

  /** The time of the newest row. */
  get now() {
    return START + Math.floor((this.rows - 1) / this.series) * this.stepMs;
  }

  /** The time before which this share of the rows lies. */
  timeAt(share) {
    return new Date(START + Math.floor((this.rows / this.series) * share) * this.stepMs);
  }

  /** The documents of the next commit, or this many rows. */
  next(count = this.perCommit) {
    return Array.from({ length: count }, () => this.#row());
  }

  #row() {
    const row = this.rows++;
    const series = row % this.series;
    const walk = this.walks[series];
    walk.value = cents(walk.value + this.random() - 0.5);
    walk.pressure = cents(walk.pressure + (this.random() - 0.5) * 0.3);
    const chance = this.random();
    return {
      at: new Date(START + Math.floor(row / this.series) * this.stepMs),
      sensor: this.sensors[series],
      value: chance * SPIKE_EVERY < 1 ? SPIKE + walk.value : walk.value,
      pressure: walk.pressure,
      status: chance < 0.98 ? "ok" : chance < 0.999 ? "warn" : "fault",
    };
  }
}
