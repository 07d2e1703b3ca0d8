// A table of rooms that follows new measurements, from this tab and others.

import { useState } from "react";
import { useDatabase, useQuery } from "./timepail-react.js";

const createReadings = (db) => db.createCollection("readings", { timeseries: { timeField: "at", metaField: "room" } });

export function Rooms() {
  const [least, setLeast] = useState(-50);
  const db = useDatabase("home", createReadings);
  const rooms = useQuery(
    db,
    "readings",
    (db) =>
      db
        .collection("readings")
        .aggregate([{ $match: { temp: { $gte: least } } }, { $group: { _id: "$room", count: { $sum: 1 }, mean: { $avg: "$temp" } } }, { $sort: { _id: 1 } }])
        .toArray(),
    [least],
  );
  if (!db || !rooms) return <p>Opening …</p>;
  const measure = () => db.collection("readings").insertOne({ at: new Date(), room: "kitchen", temp: 21 });
  return (
    <>
      <label>
        at least <input type="number" value={least} onChange={(event) => setLeast(Number(event.target.value))} />
      </label>
      <ul>
        {rooms.map(({ _id, count, mean }) => (
          <li key={_id}>
            {_id}: {count} readings, {mean.toFixed(1)} °C
          </li>
        ))}
      </ul>
      <button onClick={measure}>Measure</button>
    </>
  );
}
