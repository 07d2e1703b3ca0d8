"""Reads what `timepail export` has written, with pyarrow, pandas, Polars and DuckDB. Prints what each has found, as JSON."""

import json
import sys

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet

arrow_file, parquet_file = sys.argv[1:]
found = {}


def note(name, count, total, newest, sites, missing):
    found[name] = {"count": int(count), "sum": float(total), "newest": int(newest), "sites": sorted(sites), "missing": int(missing)}


def of_pyarrow(name, table):
    table.validate(full=True)
    times = table["at"].cast(pyarrow.int64()).to_pylist()
    sites = {row["site"] for row in table["s"].to_pylist()}
    note(name, table.num_rows, sum(table["n"].to_pylist()), max(times), sites, table["flag"].null_count)


def of_pandas(name, frame):
    newest = frame["at"].max().timestamp() * 1000
    note(name, len(frame), frame["n"].sum(), newest, {row["site"] for row in frame["s"]}, frame["flag"].isna().sum())


def of_polars(name, frame):
    newest = frame["at"].max().timestamp() * 1000
    sites = frame["s"].struct.field("site").cast(polars.String).unique()
    note(name, len(frame), frame["n"].sum(), newest, sites, frame["flag"].null_count())


def of_duckdb(name, source):
    sql = 'select count(*), sum(n), epoch_ms(max("at")), list(distinct s.site), count(*) - count(flag) from source'
    note(name, *source.query("source", sql).fetchall()[0])


with pyarrow.memory_map(arrow_file) as source:
    table = pyarrow.ipc.open_file(source).read_all()
    of_pyarrow("pyarrow, Arrow", table)
    of_pandas("pandas, Arrow", table.to_pandas())
    of_duckdb("DuckDB, Arrow", duckdb.from_arrow(table))
of_polars("Polars, Arrow", polars.read_ipc(arrow_file))
of_pyarrow("pyarrow, Parquet", pyarrow.parquet.read_table(parquet_file))
of_pandas("pandas, Parquet", pandas.read_parquet(parquet_file))
of_polars("Polars, Parquet", polars.read_parquet(parquet_file))
of_duckdb("DuckDB, Parquet", duckdb.read_parquet(parquet_file))
print(json.dumps(found))
