"""The tasks of bench/wire/tasks.mjs by PyMongo: python3 bench/wire/driver.py <uri> <points>"""

import datetime
import json
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pymongo import MongoClient

COMMIT, SINGLES = 10_000, 300
START = datetime.datetime(2025, 6, 1)
uri, points = sys.argv[1], int(sys.argv[2])


def rows(start, count):
    return [{"at": START + datetime.timedelta(seconds=i), "station": i % 10, "temp": 20 + math.sin(i / 500), "humidity": 40 + (i % 30) / 4} for i in range(start, start + count)]


times = {}


def processor_ms():
    used = client["admin"].command("serverStatus")["extra_info"]
    return (used["user_time_us"] + used["system_time_us"]) / 1000


def timed(name, work):
    begin, processor_begin, own_begin = time.perf_counter(), processor_ms(), time.process_time()
    result = work()
    own = (time.process_time() - own_begin) * 1000
    times[name] = [(time.perf_counter() - begin) * 1000, processor_ms() - processor_begin, own]
    return result


with MongoClient(uri) as client:
    collection = client["bench"].create_collection("points", timeseries={"timeField": "at", "metaField": "station"})
    for i in range(2):
        collection.insert_many(rows(points + i * COMMIT, COMMIT), ordered=False)
    batches = [rows(i * COMMIT, COMMIT) for i in range(points // COMMIT)]
    timed("insertMany of 10 000", lambda: [collection.insert_many(batch, ordered=False) for batch in batches])
    more = [rows(2 * points + i * COMMIT, COMMIT) for i in range(points // COMMIT)]
    with ThreadPoolExecutor(4) as pool:
        timed("the same, four at a time", lambda: list(pool.map(lambda batch: collection.insert_many(batch, ordered=False), more)))
    singles = rows(points + 2 * COMMIT, SINGLES)
    timed(f"{SINGLES} times insertOne", lambda: [collection.insert_one(row) for row in singles])
    found = timed("find, all measurements", lambda: list(collection.find()))
    assert len(found) == 2 * points + 2 * COMMIT + SINGLES, len(found)
    starts = [START + datetime.timedelta(seconds=i * 600) for i in range(SINGLES)]
    hundred = datetime.timedelta(seconds=100)
    timed(f"{SINGLES} times find of 100", lambda: [list(collection.find({"at": {"$gte": start, "$lt": start + hundred}})) for start in starts])

print(json.dumps(times))
