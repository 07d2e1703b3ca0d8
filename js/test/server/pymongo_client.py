"""What PyMongo does with a server. Prints a line of JSON for each test: its name, and what failed.

    python3 pymongo_client.py <uri> <uri with user> <uri with a wrong password> <TLS uri> <certificate>
"""

import datetime
import json
import sys
import threading
import traceback

import pymongo
from bson import Decimal128, Int64, ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING, DESCENDING, DeleteMany, DeleteOne, InsertOne, MongoClient, UpdateMany
from pymongo.errors import BulkWriteError, CollectionInvalid, CursorNotFound, OperationFailure

PLAIN, USER, WRONG, TLS, CERTIFICATE = sys.argv[1:6]
START = datetime.datetime(2025, 6, 1, tzinfo=datetime.timezone.utc)
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def at(seconds):
    return START + datetime.timedelta(seconds=seconds)


def rows(count, **more):
    return [{"at": at(i), "station": i % 5, "temp": i / 4, "n": i, **more} for i in range(count)]


def connect(uri=PLAIN, **options):
    return MongoClient(uri, tz_aware=True, serverSelectionTimeoutMS=5000, **options)


def fresh(client, name, **more):
    db = client["pymongo"]
    db.drop_collection(name)
    return db.create_collection(name, timeseries={"timeField": "at", "metaField": "station", "granularity": "seconds"}, **more)


def refused(code, work):
    try:
        work()
    except OperationFailure as error:
        assert error.code == code, (error.code, str(error))
        return error
    raise AssertionError(f"was not refused with {code}")


@test
def the_server_introduces_itself():
    with connect() as client:
        assert client.server_info()["versionArray"] == [7, 0, 0, 0]
        hello = client.admin.command("hello")
        assert hello["isWritablePrimary"] and hello["maxWireVersion"] == 21 and hello["maxMessageSizeBytes"] == 48000000
        assert client.admin.command("ismaster")["ismaster"] is True
        assert client.admin.command("ping")["ok"] == 1
        assert client.is_primary and client.topology_description.topology_type_name == "Single"


@test
def collections_are_made_listed_and_dropped():
    with connect() as client:
        db = client["pymongo"]
        collection = fresh(client, "made", expireAfterSeconds=10**9)
        assert "made" in db.list_collection_names()
        info = next(db.list_collections(filter={"name": "made"}))
        assert info["type"] == "timeseries" and info["options"]["timeseries"]["metaField"] == "station"
        assert info["options"]["expireAfterSeconds"] == 10**9
        assert "pymongo" in client.list_database_names()
        db.command("collMod", "made", timeseries={"granularity": "minutes"})
        assert next(db.list_collections(filter={"name": "made"}))["options"]["timeseries"]["granularity"] == "minutes"
        try:
            db.create_collection("made", timeseries={"timeField": "at"})
            raise AssertionError("was made twice")
        except CollectionInvalid:
            pass
        collection.drop()
        assert "made" not in db.list_collection_names()


@test
def values_of_every_type_come_back_as_they_went():
    with connect() as client:
        collection = fresh(client, "types")
        document = {
            "_id": ObjectId(), "at": at(0), "station": {"id": 7, "name": "Brocken"}, "double": 1.5, "int": 7, "long": Int64(2**40), "text": "Grüße",
            "bytes": b"\x00\x01", "yes": True, "none": None, "decimal": Decimal128("1.10"), "list": [1, "two", {"three": 3.0}], "inner": {"a": {"b": 1}},
        }
        collection.insert_one(document)
        assert collection.find_one() == document, collection.find_one()


@test
def documents_are_inserted_found_and_counted():
    with connect() as client:
        collection = fresh(client, "crud")
        assert len(collection.insert_many(rows(5000)).inserted_ids) == 5000
        assert collection.count_documents({}) == collection.estimated_document_count() == 5000
        assert collection.count_documents({"station": 3, "n": {"$lt": 100}}) == 20
        assert sorted(collection.distinct("station")) == [0, 1, 2, 3, 4]
        found = list(collection.find({"station": 2}, {"_id": 0, "n": 1}).sort("at", DESCENDING).skip(1).limit(2))
        assert found == [{"n": 4992}, {"n": 4987}], found
        assert collection.find_one({"n": 77})["at"] == at(77)
        assert collection.delete_many({"station": 4}).deleted_count == 1000
        assert collection.delete_one({"n": 0}).deleted_count == 1
        assert collection.update_many({"station": 3}, {"$set": {"station": 30}}).modified_count == 1000
        assert collection.find_one_and_delete({"n": 1})["temp"] == 0.25
        assert collection.count_documents({}) == 3998


@test
def cursors_go_over_many_batches():
    with connect() as client:
        collection = fresh(client, "batches")
        collection.insert_many(rows(3000))
        assert [row["n"] for row in collection.find(batch_size=7).sort("at", ASCENDING)] == list(range(3000))
        pipeline = [{"$match": {"n": {"$gte": 100}}}, {"$project": {"n": 1}}]
        assert len(list(collection.aggregate(pipeline, batchSize=11))) == 2900
        cursor = collection.find(batch_size=10)
        next(cursor)
        client["pymongo"].command("killCursors", "batches", cursors=[cursor.cursor_id])
        try:
            list(cursor)
            raise AssertionError("the cursor lives")
        except CursorNotFound as error:
            assert error.code == 43


@test
def bulk_writes_are_carried_out():
    with connect() as client:
        collection = fresh(client, "bulk")
        writes = [InsertOne(row) for row in rows(50)] + [DeleteOne({"n": 1}), DeleteMany({"station": 2}), UpdateMany({"station": 3}, {"$set": {"station": 33}})]
        result = collection.bulk_write(writes)
        assert (result.inserted_count, result.deleted_count, result.modified_count) == (50, 11, 10)
        try:
            collection.insert_many([{"at": at(1)}, {"at": "never"}, {"at": at(2)}], ordered=False)
            raise AssertionError("a text is no time")
        except BulkWriteError as error:
            assert error.details["nInserted"] == 2
            assert [(one["index"], one["code"]) for one in error.details["writeErrors"]] == [(1, 2)]


@test
def pipelines_group_and_look_up():
    with connect() as client:
        collection = fresh(client, "groups")
        collection.insert_many(rows(1000))
        groups = list(collection.aggregate([{"$group": {"_id": "$station", "n": {"$sum": 1}, "mean": {"$avg": "$temp"}}}, {"$sort": {"_id": 1}}]))
        assert groups[0] == {"_id": 0, "n": 200, "mean": 124.375}, groups[0]
        windows = [{"$setWindowFields": {"partitionBy": "$station", "sortBy": {"at": 1}, "output": {"sum": {"$sum": "$n", "window": {"documents": [-1, 0]}}}}}, {"$match": {"n": 6}}]
        assert [row["sum"] for row in collection.aggregate(windows)] == [7]
        assert list(client["pymongo"].aggregate([{"$documents": [{"a": 1}]}])) == [{"a": 1}]


@test
def indexes_are_made_used_and_dropped():
    with connect() as client:
        collection = fresh(client, "indexes")
        collection.insert_many(rows(100))
        assert collection.create_index([("station", ASCENDING), ("n", DESCENDING)]) == "station_1_n_-1"
        assert set(collection.index_information()) == {"station_1_at_1", "station_1_n_-1"}
        assert collection.find({"station": 1}).hint("station_1_n_-1").explain()["ok"] == 1
        collection.drop_index("station_1_n_-1")
        refused(27, lambda: collection.drop_index("station_1_n_-1"))


@test
def errors_have_the_codes_of_a_server():
    with connect() as client:
        db = client["pymongo"]
        fresh(client, "errors")
        refused(72, lambda: db.command("create", "plain"))
        refused(26, lambda: db["absent"].insert_one({"a": 1}))
        refused(59, lambda: db.command("fly"))
        refused(2, lambda: list(db["errors"].find({"a": {"$fly": 1}})))
        refused(40324, lambda: list(db["errors"].aggregate([{"$fly": 1}])))
        refused(73, lambda: client["a<b"].command("listCollections"))
        refused(76, lambda: client.admin.command("replSetGetStatus"))
        assert list(db["absent"].find()) == [] and db["absent"].count_documents({}) == 0


@test
def a_command_ends_when_its_time_is_over():
    with connect() as client:
        collection = fresh(client, "limits")
        collection.insert_many([{"at": at(i), "station": i, "n": i} for i in range(2000)])
        repeated = {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": "", "in": {"$concat": ["$$value", {"$toString": "$n"}]}}}
        slow = {"$expr": {"$lt": [{"$strLenCP": repeated}, 0]}}
        refused(50, lambda: list(collection.find(slow).max_time_ms(20)))
        refused(50, lambda: list(collection.aggregate([{"$match": slow}], maxTimeMS=20)))
        with pymongo.timeout(0.05):
            try:
                list(collection.find(slow))
                raise AssertionError("it had time enough")
            except pymongo.errors.PyMongoError as error:
                assert error.timeout, error
        assert collection.count_documents({}) == 2000
        assert client.admin.command("killOp", op=10**6)["ok"] == 1


@test
def sessions_are_accepted_and_transactions_refused():
    with connect() as client:
        collection = fresh(client, "sessions")
        with client.start_session() as session:
            collection.insert_many(rows(10), session=session)
            assert len(list(collection.find(session=session, batch_size=3))) == 10
            with session.start_transaction():
                refused(20, lambda: collection.insert_one({"at": at(99)}, session=session))
                session.abort_transaction()
        assert collection.count_documents({}) == 10
        majority = collection.with_options(write_concern=pymongo.WriteConcern("majority"), read_concern=pymongo.read_concern.ReadConcern("majority"), read_preference=pymongo.ReadPreference.SECONDARY_PREFERRED)
        majority.insert_one({"at": at(20)})
        assert majority.count_documents({}) == 11
        two = collection.with_options(write_concern=pymongo.WriteConcern(2))
        refused(2, lambda: two.insert_one({"at": at(21)}))


@test
def unacknowledged_writes_have_no_reply_and_stay_in_order():
    with connect(maxPoolSize=1) as client:
        collection = fresh(client, "silent")
        silent = collection.with_options(write_concern=pymongo.WriteConcern(0))
        for row in rows(100):
            silent.insert_one(row)
        assert collection.count_documents({}) == 100


@test
def the_stable_api_is_understood():
    with connect(server_api=pymongo.server_api.ServerApi("1", strict=True)) as client:
        collection = fresh(client, "stable")
        collection.insert_many(rows(10))
        assert len(list(collection.find())) == 10
        refused(323, lambda: client["pymongo"].command("collStats", "stable"))


@test
def messages_are_compressed_if_the_client_wants():
    with connect(compressors="zlib") as client:
        collection = fresh(client, "compressed")
        collection.insert_many(rows(2000, text="x" * 500))
        assert len(list(collection.find(batch_size=500))) == 2000


@test
def large_documents_go_through():
    with connect() as client:
        collection = fresh(client, "large")
        collection.insert_many([{"at": at(i), "text": "x" * 4_000_000} for i in range(4)])
        assert [len(row["text"]) for row in collection.find()] == [4_000_000] * 4
        raw = client["pymongo"].get_collection("large", codec_options=client.codec_options.with_options(document_class=RawBSONDocument))
        assert len(next(raw.find({}, {"text": 0})).raw) > 20


@test
def fifty_clients_write_at_once():
    with connect() as client:
        collection = fresh(client, "crowd")
        failures = []

        def write(number):
            try:
                with connect() as own:
                    crowd = own["pymongo"]["crowd"]
                    for turn in range(4):
                        crowd.insert_many([{"at": at(turn), "station": number, "n": i} for i in range(25)])
                    assert crowd.count_documents({"station": number}) == 100
            except Exception as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == [], failures[:3]
        assert collection.count_documents({}) == 5000


@test
def administration_answers():
    with connect() as client:
        collection = fresh(client, "administration")
        collection.insert_many(rows(10))
        db = client["pymongo"]
        assert db.command("collstats", "administration")["timeseries"]["bucketCount"] == 5
        assert db.command("dbstats")["collections"] >= 2
        assert db.validate_collection("administration")["valid"] and db.validate_collection("administration", full=True)["valid"]
        for command in ["hostInfo", "serverStatus", "connectionStatus", "getCmdLineOpts", "whatsmyuri", "currentOp", "top", "getFreeMonitoringStatus"]:
            assert client.admin.command(command)["ok"] == 1, command
        assert client.admin.command("getLog", "startupWarnings")["log"] == []
        assert client.admin.command("getParameter", 1, featureCompatibilityVersion=1)["featureCompatibilityVersion"] == {"version": "7.0"}
        assert client.admin.command("listDatabases", nameOnly=True, filter={"name": "pymongo"})["databases"] == [{"name": "pymongo"}]


@test
def only_users_with_their_password_come_in():
    with connect(USER) as client:
        collection = fresh(client, "users")
        collection.insert_many(rows(10))
        assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "märz", "db": "admin"}]
    with connect(WRONG) as client:
        refused(18, lambda: client["pymongo"].command("listCollections"))
    host = USER.split("@")[-1]
    with connect(f"mongodb://{host}") as client:
        assert client.admin.command("ping")["ok"] == 1
        refused(13, lambda: client["pymongo"].command("listCollections"))


@test
def tls_works_with_the_right_certificate():
    with connect(TLS, tls=True, tlsCAFile=CERTIFICATE) as client:
        assert client.admin.command("ping")["ok"] == 1
    with MongoClient(TLS, tls=True, serverSelectionTimeoutMS=500) as client:
        try:
            client.admin.command("ping")
            raise AssertionError("a certificate that nobody knows was accepted")
        except pymongo.errors.ServerSelectionTimeoutError:
            pass


for function in TESTS:
    failure = None
    try:
        function()
    except BaseException:
        failure = traceback.format_exc()
    print(json.dumps({"name": function.__name__.replace("_", " "), "failure": failure}), flush=True)
