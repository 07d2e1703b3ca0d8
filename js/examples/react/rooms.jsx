// A table of rooms that follows new measurements, from this tab and others.

import { useState } from "react";
import { useDatabase, useLive } from "timepail/react";

const prepare = (db) => db.createCollection("readings", { timeseries: { timeField: "at", metaField: "room" } });

export function Rooms() {
  const [least, setLeast] = useState(-50);
  const db = useDatabase("home", { prepare });
  const rooms = useLive(
    () =>
      db
        ?.collection("readings")
        .aggregate([{ $match: { temp: { $gte: least } } }, { $group: { _id: "$room", count: { $sum: 1 }, mean: { $avg: "$temp" } } }, { $sort: { _id: 1 } }]),
    [db, least],
  );
  const measure = () => db.collection("readings").insertOne({ at: new Date(), room: "kitchen", temp: 21 });
  return (
    <>
      <label>
        at least <input type="number" value={least} onChange={(event) => setLeast(Number(event.target.value))} />
      </label>
      <ul>
        {rooms?.map(({ _id, count, mean }) => (
          <li key={_id}>
            {_id}: {count} readings, {mean.toFixed(1)} °C
          </li>
        ))}
      </ul>
      <button disabled={!db} onClick={measure}>Measure</button>
    </>
  );
}
