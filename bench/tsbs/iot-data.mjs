// Measurements of trucks after the IoT use case. A truck drives and rests by turns, fills up when its tank is empty, loads when it rests, and breaks down at times.

import { START, STEP_MS, generator, times } from "./random.mjs";

export const FLEETS = ["East", "West", "North", "South"];
const MODELS = [
  { model: "F-150", load_capacity: 2000, fuel_capacity: 200, nominal_fuel_consumption: 15 },
  { model: "G-2000", load_capacity: 5000, fuel_capacity: 300, nominal_fuel_consumption: 19 },
  { model: "H-2", load_capacity: 1500, fuel_capacity: 150, nominal_fuel_consumption: 12 },
];
const ROWS_PER_MINUTE = 6;

function tagsOf(truck, random) {
  const { model, ...capacities } = random.of(MODELS);
  return {
    name: `truck_${truck}`,
    fleet: random.of(FLEETS),
    driver: random.of(["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"]),
    model,
    device_version: random.of(["v1.0", "v1.5", "v2.0", "v2.3"]),
    ...capacities,
  };
}

const between = (low, high, value) => Math.min(high, Math.max(low, value));
const rounded = (value, digits) => Number(value.toFixed(digits));

/** One truck, row by row. Both of its measurements describe the same journey. */
function journey(time, tags, random) {
  const rows = time.length;
  const readings = { time };
  for (const field of ["latitude", "longitude", "elevation", "velocity", "heading", "grade", "fuel_consumption"]) readings[field] = new Float64Array(rows);
  const diagnostics = { time, fuel_state: new Float64Array(rows), current_load: new Float64Array(rows), status: new Int32Array(rows) };

  const patience = random.of([40, 90, 600]);
  let [latitude, longitude, elevation, heading] = [random.next() * 90, random.next() * 180, random.next() * 500, random.next() * 360];
  let [velocity, grade, consumption, fuel] = [0, 0, tags.nominal_fuel_consumption, random.next()];
  let load = random.below(tags.load_capacity + 1);
  let [isDriving, left] = [random.next() < 0.7, random.below(30 * ROWS_PER_MINUTE)];
  let [status, broken] = [0, 0];
  for (let row = 0; row < rows; row++) {
    if (left-- <= 0) {
      isDriving = !isDriving;
      left = Math.round(ROWS_PER_MINUTE * (isDriving ? patience * (0.5 + random.next()) : 5 + random.next() * 35));
      if (!isDriving && random.next() < 0.7) load = random.below(tags.load_capacity + 1);
    }
    if (broken > 0) broken--;
    else if (random.next() < 0.002) [broken, status] = [random.below(25 * ROWS_PER_MINUTE), 1 + random.below(5)];
    else status = 0;
    const step = () => random.next() * 2 - 1;
    velocity = isDriving ? between(5, 100, velocity + step() * 10) : 0;
    if (isDriving) {
      [latitude, longitude] = [between(-90, 90, latitude + step() * 0.005), between(-180, 180, longitude + step() * 0.005)];
      elevation = between(0, 5000, elevation + step() * 10);
      heading = between(0, 360, heading + step() * 5);
      grade = between(0, 100, grade + step() * 5);
      fuel -= 0.0004 * (0.5 + random.next());
    }
    if (fuel <= 0) fuel = 1;
    consumption = between(0, 50, consumption + step() * 2);
    readings.latitude[row] = rounded(latitude, 5);
    readings.longitude[row] = rounded(longitude, 5);
    readings.elevation[row] = Math.round(elevation);
    readings.velocity[row] = Math.round(velocity);
    readings.heading[row] = Math.round(heading);
    readings.grade[row] = Math.round(grade);
    readings.fuel_consumption[row] = rounded(isDriving ? consumption : 0, 1);
    diagnostics.fuel_state[row] = rounded(fuel, 3);
    diagnostics.current_load[row] = load;
    diagnostics.status[row] = status;
  }
  return { readings, diagnostics };
}

/** The use case: from `start` to before `end`, two measurements of `{ name, series: [{ tags, columns }] }`. */
export function iotData({ hosts, hours }) {
  const time = times(hours);
  const trucks = Array.from({ length: hosts }, (_, truck) => {
    const random = generator(`truck ${truck}`);
    const tags = tagsOf(truck, random);
    return { tags, ...journey(time, tags, random) };
  });
  const measurement = (name) => ({ name, series: trucks.map((truck) => ({ tags: truck.tags, columns: truck[name] })) });
  return { name: "iot", start: START, end: START + time.length * STEP_MS, measurements: [measurement("readings"), measurement("diagnostics")] };
}
