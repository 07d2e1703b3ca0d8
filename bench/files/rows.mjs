// Measurements of twenty stations, the same in each process.

export function* rowsOf(count) {
  for (let i = 0; i < count; i++) {
    yield { time: new Date(1.7e12 + i * 1000), station: `s${i % 20}`, temp: Math.round((20 + Math.sin(i / 500) * 5) * 100) / 100, wind: i % 30, state: i % 50 === 0 ? "calm, then not" : "ok" };
  }
}

export function columnsOf(rows) {
  const columns = {};
  for (const field of ["time", "station", "temp", "wind", "state"]) columns[field] = rows.map((row) => row[field]);
  return columns;
}
