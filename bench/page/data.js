// Seeded measurements: ten sensors with one reading per second, and four fields beside time and series.

export const SERIES = 10;

export function random(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

const cents = (x) => Math.round(x * 100) / 100;

/** `count` documents in time order, series after series at each second. */
export function readings(count, { start = Date.UTC(2024, 0, 1), seed = 7 } = {}) {
  const next = random(seed);
  const walk = Array.from({ length: SERIES }, (_, i) => ({ temp: 15 + i, humidity: 50, pressure: 1000, battery: 4 }));
  const documents = new Array(count);
  for (let i = 0; i < count; i++) {
    const series = i % SERIES;
    const state = walk[series];
    state.temp = cents(state.temp + (next() - 0.5) * 0.2);
    state.humidity = cents(Math.min(100, Math.max(0, state.humidity + (next() - 0.5))));
    state.pressure = cents(state.pressure + (next() - 0.5) * 0.3);
    state.battery = cents(Math.max(3, state.battery - next() * 0.0001));
    documents[i] = {
      at: new Date(start + Math.floor(i / SERIES) * 1000),
      sensor: `s${series}`,
      temp: state.temp,
      humidity: state.humidity,
      pressure: state.pressure,
      battery: state.battery,
    };
  }
  return documents;
}
