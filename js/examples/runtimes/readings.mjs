// Shared by the examples in this folder: adds one reading per run and queries all of them.

export async function addReading(db) {
  const readings = await db.createCollection("readings", { timeseries: { timeField: "at", metaField: "sensor" } });
  const run = await readings.countDocuments();
  await readings.insertOne({ at: new Date(Date.UTC(2024, 0, 1, run)), sensor: "roof", temp: 20 + run });
  const [found] = await readings.aggregate([{ $group: { _id: "$sensor", count: { $sum: 1 }, temp: { $avg: "$temp" } } }]).toArray();
  console.log(`${found.count} readings of ${found._id}, ${found.temp} degrees on average`);
}
