"""Rows a second over both protocols, as JSON. `python measure.py PROGRAM ROWS`, in the environment of `make interop`."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import psycopg

from site_of_meters import Database

COLUMNS = "window_start, sum_load, count_load, mean_load, population, status, checked"


def timed(what, rows, act):
    """The best of three."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        act()
        times.append(time.perf_counter() - begun)
    return {"what": what, "seconds": round(min(times), 3), "rows_per_second": round(rows / min(times))}


def main(program, rows):
    os.environ["DATABASE"] = program
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open(folder / "big.json", "w") as file:
            for at in range(rows):
                file.write(json.dumps({
                    "window_start": 10_000 * at, "window_end": 10_000 * (at + 1), "sum_load": f"{at % 997}.25",
                    "count_load": at % 31, "mean_load": at / 7, "population": 5, "silent": 0, "excluded": 0,
                    "status": "ok"}) + "\n")
        begun = time.perf_counter()
        database = Database(folder / "database", "--rows", str(folder / "big.json"))
        figures = [{"what": "reading the file and starting", "seconds": round(time.perf_counter() - begun, 3)}]
        try:
            figures += measure(database, rows)
        finally:
            database.process.end()
    print(json.dumps({"rows": rows, "figures": figures}, indent=1))


def measure(database, rows):
    password, query = database.passwords["ann"], f"SELECT {COLUMNS} FROM big"
    database.rows("SELECT count(*) FROM big")
    command = ["psql", "-h", "127.0.0.1", "-p", database.port, "-U", "ann", "-X", "-At", "-c", query, "alpheus"]
    environment = {**os.environ, "PGPASSWORD": password}
    yield timed("psql, text", rows, lambda: subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env=environment))
    with psycopg.connect(host="127.0.0.1", port=database.port, user="ann", dbname="alpheus", password=password,
                         autocommit=True) as connection:
        yield timed("psycopg, binary, to Python values", rows,
                    lambda: connection.execute(query, binary=True).fetchall())
        yield timed("a sum over all rows by the hour", rows, lambda: connection.execute(
            "SELECT date_trunc('hour', window_start), sum(sum_load) FROM big GROUP BY 1").fetchall())
    login = {"username": "ann", "password": password}
    with flight_sql.connect(f"grpc://{database.flight}", db_kwargs=login, autocommit=True) as connection:
        with connection.cursor() as cursor:
            def fetch():
                cursor.execute(query)
                return cursor.fetch_arrow_table()
            yield timed("ADBC, to an Arrow table", rows, fetch)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
