// The collections of the demo: how each is created, what its measurements look like, and where they come from. `discover.js` adds those of the visitor.
//
// `series` are the names of the lines, `values` the metadata of each if it is not a string, `fields` the units of the drawn fields.

const DAY_SECONDS = 86_400;

export const datasets = {
  weather: {
    title: "Weather",
    about: "Hourly weather normals of Seattle: one series, one measurement per hour for a year.",
    timeseries: { timeField: "at", metaField: "station", granularity: "hours" },
    series: ["Seattle"],
    fields: { temperature: "°C", wind: "m/s", pressure: "hPa" },
    async documents() {
      const rows = await csv("/vendor/vega-datasets/seattle-weather-hourly-normals.csv");
      return rows.map(({ date, temperature, wind, pressure }) => ({
        at: new Date(`${date}Z`),
        station: "Seattle",
        temperature: Number(temperature),
        wind: Number(wind),
        pressure: Number(pressure),
      }));
    },
  },
  stocks: {
    title: "Stocks",
    about: "Monthly share prices of five companies, 2000 to 2010. A bucket may span a year, because the data is monthly.",
    timeseries: { timeField: "at", metaField: "symbol", bucketMaxSpanSeconds: 365 * DAY_SECONDS, bucketRoundingSeconds: 365 * DAY_SECONDS },
    series: ["AAPL", "AMZN", "GOOG", "IBM", "MSFT"],
    fields: { price: "US$" },
    async documents() {
      const rows = await csv("/vendor/vega-datasets/stocks.csv");
      return rows.map(({ date, symbol, price }) => ({ at: new Date(`${date} UTC`), symbol, price: Number(price) }));
    },
  },
  sensors: {
    title: "Sensors",
    about: "Five simulated sensors, each with a measurement every ten seconds. Each click continues after the newest one.",
    timeseries: { timeField: "at", metaField: "room", granularity: "minutes" },
    series: ["attic", "cellar", "garage", "garden", "kitchen"],
    fields: { temperature: "°C", humidity: "%", voltage: "V" },
    days: 1,
    cure: "Add some points above to see it here",
  },
};

const builtIn = Object.keys(datasets);
export const isBuiltIn = (name) => builtIn.includes(name);

/** Creating a collection that exists already with the same options does nothing. */
export async function createCollections(db) {
  const present = new Set((await db.listCollections().toArray()).map(({ name }) => name));
  for (const name of builtIn) if (!present.has(name)) await db.createCollection(name, { timeseries: datasets[name].timeseries });
}

/** Rows of a CSV file as objects of strings. Enough for files without quotes. */
async function csv(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  const [header, ...lines] = (await response.text()).trim().split(/\r?\n/);
  const names = header.split(",");
  return lines.map((line) => {
    const cells = line.split(",");
    return Object.fromEntries(names.map((name, i) => [name, cells[i]]));
  });
}
