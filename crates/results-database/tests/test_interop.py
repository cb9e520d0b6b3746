"""Real clients at `alpheus-database`: psql, dbt, psycopg, pandas, DuckDB and ADBC. `make interop` runs this."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import duckdb
import pandas
import psycopg

from site_of_meters import ROOT, WINDOWS, Background, Database, Site, program, until


HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent


def setUpModule():
    global TEMPORARY, SITE, DATABASE
    TEMPORARY = tempfile.TemporaryDirectory()
    folder = Path(TEMPORARY.name)
    (folder / "site").mkdir()
    SITE = Site(folder / "site")
    DATABASE = Database(folder / "database", "--server", SITE.server, "--identity", SITE.identity,
                        "--alpheus", program("ALPHEUS"))
    # The last windows open some time after the recording has ended. Then nothing changes any more.
    last = "(SELECT max(window_end) FROM "
    all_rows = (f"SELECT count(*) = {WINDOWS} AND max(window_end) = {last} noisy) "
                f"AND max(window_end) = {last} gas) FROM load")
    until("rows of all windows", lambda: DATABASE.rows(all_rows) == [["t"]] or None)


def tearDownModule():
    DATABASE.process.end()
    SITE.up.end()
    TEMPORARY.cleanup()


def connect(role="ann", database=None, **more):
    database = database or DATABASE
    return psycopg.connect(host="127.0.0.1", port=database.port, user=role, dbname="alpheus",
                           password=database.passwords[role], **more)


def arrow(role="ann", password=None):
    login = {"username": role, "password": password or DATABASE.passwords[role]}
    return flight_sql.connect(f"grpc://{DATABASE.flight}", db_kwargs=login, autocommit=True)


class Rows(unittest.TestCase):
    def test_numbers_are_those_of_alpheus_query_and_stand_beside_what_is_known_of_them(self):
        said = SITE.query("--results", "Load", "--format", "json")
        expected = [json.loads(line) for line in said.splitlines()]
        columns = "extract(epoch from window_start)::bigint * 1000, sum_load, count_load, population, status, integrity"
        found = DATABASE.rows(f"SELECT {columns}, checked FROM load ORDER BY window_start")
        self.assertGreater(len(expected), 10)
        cells = [[str(row[name]) for name in
                  ["window_start", "sum_load", "count_load", "population", "status", "integrity"]]
                 for row in expected]
        self.assertEqual([row[:-1] for row in found], cells)
        checked = {row[-1] for row in found if row[4] == "ok"}
        self.assertEqual(checked, {"t"})

    def test_noise_and_budget_stand_beside_the_number(self):
        columns = "mean_reading, mean_reading_deviation, mean_reading_margin_95, budget_epsilon, checked"
        rows = DATABASE.rows(f"SELECT {columns} FROM noisy WHERE status LIKE 'ok%'")
        for mean, deviation, margin, epsilon, checked in rows:
            self.assertGreater(float(margin), float(deviation))
            self.assertEqual((float(epsilon), checked), (3.34, "f"))
        budget = json.loads(DATABASE.rows("SELECT budget FROM about.queries WHERE name = 'noisy'")[0][0])
        self.assertEqual(budget["reading"]["epsilon"], "3.34")
        meaning = DATABASE.rows("SELECT what, unit FROM about.columns WHERE name = 'sum_load'")
        self.assertEqual(meaning, [["total load", "kW"]])

    def test_sealed_rows_were_opened_by_alpheus(self):
        sums = DATABASE.rows("SELECT DISTINCT sum_gas FROM gas WHERE status = 'ok'")
        self.assertEqual(sums, [["30"]])
        sealed = DATABASE.rows("SELECT name FROM about.queries WHERE sealed")
        self.assertEqual(sealed, [["gas"]])

    def test_saved_rows_are_served_without_a_service_and_nobody_has_checked_them(self):
        path = Path(TEMPORARY.name) / "saved.json"
        path.write_text(SITE.query("--results", "Load", "--format", "json"))
        database = Database(Path(TEMPORARY.name) / "of-files", "--rows", str(path))
        try:
            self.assertEqual(database.rows("SELECT DISTINCT checked FROM saved"), [["f"]])
            exact = "SELECT sum(sum_load) FROM "
            self.assertEqual(database.rows(exact + "saved"), DATABASE.rows(exact + "load"))
            self.assertIn("42P01", database.refusal("SELECT * FROM meters"))
        finally:
            database.process.end()


class Refusals(unittest.TestCase):
    def test_a_question_over_streams_gets_the_planners_words(self):
        said = DATABASE.refusal("SELECT avg(health) FROM meters")
        for expected in ["42501", "keep `health` private", "no budget was spent", "HINT"]:
            self.assertIn(expected, said)
        said = DATABASE.refusal("SELECT * FROM meters")
        self.assertIn("single values are never released", said)
        # In the language of `alpheus sql`, which is no SQL of Postgres.
        question = "SELECT AVG(health) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters"
        lower = "select avg(health)\nfrom Meters between 3 and 100"
        for text in [question, "CREATE STREAM Mine AS " + question, lower]:
            self.assertIn("keep `health` private", DATABASE.refusal(text))

    def test_a_stream_behind_a_join_is_the_schema_that_the_planner_knows(self):
        for text in ["SELECT avg(m.health) FROM load JOIN meters m ON true", "SELECT avg(health) FROM load, meters"]:
            said = DATABASE.refusal(text)
            self.assertIn("`Meters` is a stream", said)
            self.assertNotIn("no schema", said)

    def test_nothing_that_clients_ask_spends_budget_or_begins_a_query(self):
        before = SITE.budgets()
        running = DATABASE.rows("SELECT name FROM about.queries ORDER BY 1")
        for _ in range(20):
            DATABASE.rows("SELECT * FROM noisy")
        for text in ["SELECT avg(reading) FROM meters", "CREATE STREAM Mine AS SELECT AVG(load) "
                     "WINDOW TUMBLING (SIZE 20 SECONDS) FROM Meters", "DROP STREAM Noisy"]:
            DATABASE.refusal(text)
        self.assertEqual(SITE.budgets(), before)
        self.assertRegex(before, r"reading .* ε = [1-9]")
        listed = SITE.query("--query", "SHOW QUERIES", "--format", "json")
        self.assertEqual([row[0] for row in json.loads(listed)[0]["rows"]], ["Gas", "Load", "Noisy"])
        self.assertEqual(DATABASE.rows("SELECT name FROM about.queries ORDER BY 1"), running)

    def test_released_rows_are_read_only(self):
        for text, code in [
            ("DROP TABLE released.load", "25006"), ("DELETE FROM released.load", "25006"),
            ("INSERT INTO released.load SELECT * FROM load", "25006"),
            ("UPDATE released.load SET population = 9", "25006"),
            ("ALTER TABLE released.load RENAME TO mine", "25006"),
            ("CREATE VIEW released.mine AS SELECT 1 AS a", "25006"),
            ("SELECT 1 AS a INTO mine", "25006"), ("CREATE SCHEMA other", "42501"),
            ("COPY load TO '/tmp/x'", "0A000"), ("COPY load TO STDOUT", "0A000"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "42601"),
            ("SELECT * FROM '/etc/passwd'", "42"), ("SET datafusion.execution.batch_size = 1", "42501"),
            ("SELECT * FROM nothing", "42P01"), ("SELECT nothing FROM load", "42703"),
            ("SELEC 1", "42601"), ("SELECT 1/0", "22012"),
        ]:
            with self.subTest(text):
                self.assertIn(f"ERROR:  {code}", DATABASE.refusal(text))

    def test_a_wrong_password_or_name_is_refused(self):
        for role, password in [("ann", "wrong"), ("eve", DATABASE.passwords["ann"]), ("bob", "")]:
            with self.assertRaises(psycopg.OperationalError):
                psycopg.connect(host="127.0.0.1", port=DATABASE.port, user=role, password=password or "x",
                                dbname="alpheus")
            with self.assertRaisesRegex(adbc_driver_manager.Error, "log in"):
                arrow(role, password or "x").cursor().execute("SELECT 1")


class Scratch(unittest.TestCase):
    def test_each_role_has_its_own_schemas(self):
        DATABASE.rows("CREATE TABLE mine AS SELECT 1 AS a")
        DATABASE.rows("CREATE SCHEMA IF NOT EXISTS ann_more")
        DATABASE.rows("CREATE VIEW ann_more.shown AS SELECT a + 1 AS b FROM mine")
        self.assertEqual(DATABASE.rows("SELECT b FROM ann_more.shown"), [["2"]])
        for text in ["SELECT * FROM ann.mine", "SELECT * FROM mine"]:
            self.assertIn("42P01", DATABASE.refusal(text, role="bob"))
        for text in ["DROP TABLE ann.mine", "CREATE TABLE ann.other AS SELECT 1 AS a"]:
            self.assertIn("42501", DATABASE.refusal(text, role="bob"))
        self.assertIn("2BP01", DATABASE.refusal("DROP TABLE mine"))
        DATABASE.rows("DROP TABLE mine CASCADE")
        self.assertIn("42P01", DATABASE.refusal("SELECT b FROM ann_more.shown"))

    def test_a_view_cannot_read_itself(self):
        DATABASE.rows("CREATE VIEW first AS SELECT 1 AS a")
        DATABASE.rows("CREATE VIEW second AS SELECT a FROM first")
        said = DATABASE.refusal("CREATE OR REPLACE VIEW first AS SELECT a FROM second")
        self.assertIn("42P17", said)
        DATABASE.rows("DROP VIEW first CASCADE")

    def test_a_transaction_that_is_rolled_back_leaves_nothing(self):
        with connect() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
            connection.commit()
            connection.execute("INSERT INTO kept VALUES (2)")
            connection.execute("CREATE TABLE gone AS SELECT 1 AS a")
            connection.execute("ALTER TABLE kept RENAME TO renamed")
            connection.rollback()
            self.assertEqual(connection.execute("SELECT a FROM kept").fetchall(), [(1,)])
            with self.assertRaises(psycopg.errors.UndefinedTable):
                connection.execute("SELECT * FROM gone")
            connection.rollback()
            connection.execute("DROP TABLE kept")

    def test_a_transaction_whose_connection_ends_leaves_nothing(self):
        connection = connect()
        connection.execute("CREATE TABLE unfinished AS SELECT 1 AS a")
        self.assertEqual(DATABASE.rows("SELECT a FROM unfinished"), [["1"]])
        connection.close()
        until("its end", lambda: DATABASE.psql("SELECT a FROM unfinished")[0] or None)

    def test_rows_of_own_tables_can_be_changed(self):
        DATABASE.rows("CREATE TABLE floors (meter text, floor int)")
        DATABASE.rows("INSERT INTO floors VALUES ('m0', 1), ('m1', 2), ('m2', 3)")
        DATABASE.rows("UPDATE floors SET floor = 5 WHERE meter = 'm1'")
        DATABASE.rows("DELETE FROM floors WHERE floor = 3")
        self.assertEqual(DATABASE.rows("SELECT * FROM floors ORDER BY 1"), [["m0", "1"], ["m1", "5"]])
        DATABASE.rows("TRUNCATE floors")
        self.assertEqual(DATABASE.rows("SELECT * FROM floors"), [])
        DATABASE.rows("DROP TABLE floors")


class Clients(unittest.TestCase):
    def test_the_guide_works_as_it_is_written(self):
        guide = (ROOT / "docs/standards.md").read_text()
        part = guide.split("## Results as a database\n")[1].split("\n## ")[0]
        script, commands = ["set -euo pipefail"], commands_of(part)
        serve = next(command for command in commands if "serve" in command)
        folder = Path(TEMPORARY.name) / "guide"
        folder.mkdir()
        (folder / "pki").symlink_to(Path(SITE.identity).parent)
        path = f"{folder / 'bin'}:{BIN}:{os.environ['PATH']}"
        (folder / "bin").mkdir()
        for name, variable in [("alpheus", "ALPHEUS"), ("alpheus-database", "DATABASE")]:
            (folder / "bin" / name).symlink_to(program(variable))
        run = {"cwd": folder, "env": {**os.environ, "PATH": path, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}}
        first, rest = commands[:commands.index(serve)], commands[commands.index(serve) + 1:]
        subprocess.run(["bash", "-c", "\n".join(script + first)], check=True, **run)
        served = Background(["bash", "-c", "exec " + serve.replace("https://localhost:7400", SITE.server)],
                            folder / "log", **run)
        try:
            served.says("flight 127.0.0.1:5440\n")
            ran = subprocess.run(["bash", "-c", "\n".join(script + rest)], capture_output=True, text=True, **run)
        finally:
            served.end()
        said = ran.stdout + ran.stderr
        self.assertEqual(ran.returncode, 0, said)
        for expected in ["Completed successfully", "max", "total load", "the planner says", "no budget was spent"]:
            self.assertIn(expected, said)

    def test_psql_describes_tables(self):
        _, said, errors = DATABASE.psql("\\d released.load", options=())
        self.assertIn("numeric", said, errors)
        _, said, errors = DATABASE.psql("\\dt released.*", "\\dv", "\\dn", "\\l", "\\du", options=())
        self.assertIn("noisy", said, errors)

    def test_dbt_builds_twice_with_seeds_and_documentation(self):
        project = Path(TEMPORARY.name) / "dbt"
        for name, text in PROJECT.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text.replace("PORT", DATABASE.port))
        environment = {**os.environ, "PGPASSWORD": DATABASE.passwords["ann"],
                       "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        for command in [["build"], ["build"], ["docs", "generate"]]:
            arguments = ["--project-dir", str(project), "--profiles-dir", str(project)]
            ran = subprocess.run([BIN / "dbt", *command, *arguments], capture_output=True, text=True,
                                 env=environment)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        catalog = json.loads((project / "target/catalog.json").read_text())
        self.assertEqual(catalog["errors"], None)
        self.assertIn("model.meters.hourly", catalog["nodes"])
        exact = DATABASE.rows("SELECT sum(sum_load) FROM load WHERE checked")
        self.assertEqual(DATABASE.rows("SELECT sum(load) FROM hourly"), exact)

    def test_psycopg_binds_parameters_and_reads_types(self):
        with connect(autocommit=True) as connection:
            rows = connection.execute(
                "SELECT window_start, sum_load, count_load, checked FROM load WHERE population >= %s AND status = %s",
                (3, "ok"), prepare=True, binary=True).fetchall()
            self.assertEqual(str(rows[0][1]), "291.25")
            self.assertEqual((rows[0][0].utcoffset().seconds, rows[0][2], rows[0][3]), (0, 5, True))

    def test_jdbc_prepares_lists_and_refuses(self):
        url = f"jdbc:postgresql://127.0.0.1:{DATABASE.port}/alpheus"
        command = ["java", "-cp", program("JDBC"), HERE / "JdbcClient.java", url]
        environment = {**os.environ, "PGPASSWORD": DATABASE.passwords["ann"]}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        expected = ["291.25 true", "released.load TABLE", "sum_load numeric", "42501 true"]
        self.assertEqual(ran.stdout.splitlines(), expected, ran.stderr)

    def test_pandas_and_duckdb_read_arrow(self):
        with arrow() as connection:
            frame = pandas.read_sql("SELECT * FROM load", connection)
            self.assertEqual(str(frame.sum_load.sum()), DATABASE.rows("SELECT sum(sum_load) FROM load")[0][0])
            with connection.cursor() as cursor:
                cursor.execute("SELECT * FROM released.noisy WHERE status LIKE 'ok%'")
                noisy = cursor.fetch_arrow_table()
                query = "SELECT count(*), min(mean_reading_margin_95) > 0 FROM noisy"
                self.assertEqual(duckdb.sql(query).fetchall(), [(len(noisy), True)])
                cursor.execute("CREATE TABLE by_flight AS SELECT * FROM noisy")
                self.assertIn(["by_flight"], DATABASE.rows(
                    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'ann'"))
                cursor.execute("DROP TABLE by_flight")
            tables = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
            names = {table["table_name"] for schema in tables[0]["catalog_db_schemas"]
                     for table in schema["db_schema_tables"]}
            self.assertLessEqual({"load", "noisy", "queries"}, names)
            self.assertEqual(len(connection.adbc_get_table_schema("load", db_schema_filter="released").names), 10)

    def test_flight_refuses_with_the_same_words(self):
        for text, expected in [("SELECT avg(health) FROM meters", "keep `health` private"),
                               ("DELETE FROM released.load", "25006"), ("SELECT nothing FROM load", "42703")]:
            with arrow() as connection, connection.cursor() as cursor:
                with self.assertRaisesRegex(adbc_driver_manager.Error, expected):
                    cursor.execute(text)
                    cursor.fetchall()


class Licences(unittest.TestCase):
    def test_packages_are_under_licences_that_we_take(self):
        tidy = (ROOT / "xtask/src/tidy/licences.rs").read_text().split("ALLOWED: &[&str] = &[")[1]
        # bzip2's own, which is like BSD's.
        allowed = {*re.findall(r'"([^"]+)"', tidy.split("];")[0]), "bzip2-1.0.6"}
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path",
                   str(HERE.parent / "Cargo.toml")]
        packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
        takes = lambda licence: any(
            all(part.strip() in allowed for part in one.split(" AND "))
            for one in re.sub(r"[()]", "", licence.replace("/", " OR ")).split(" OR "))
        refused = [(own["name"], own["license"]) for own in packages if not takes(own["license"] or "none")]
        self.assertEqual(refused, [])
        self.assertGreater(len(packages), 300)


class Life(unittest.TestCase):
    def test_rows_stay_when_alpheus_ends_and_none_comes_twice(self):
        before = DATABASE.rows("SELECT count(*) FROM load")
        children = Path(f"/proc/{DATABASE.process.process.pid}/task/{DATABASE.process.process.pid}/children")
        feeds = [int(child) for child in children.read_text().split()]
        self.assertEqual(len(feeds), 1)
        os.kill(feeds[0], 9)
        DATABASE.process.says("is started again")
        self.assertEqual(DATABASE.rows("SELECT count(*) FROM load"), before)
        until("another feed", lambda: children.read_text().split() not in ([], [str(feeds[0])]) or None)
        self.assertEqual(DATABASE.rows("SELECT count(*) FROM load"), before)

    def test_other_machines_need_tls(self):
        folder = Path(TEMPORARY.name)
        serve = [program("DATABASE"), "serve", "--roles", str(DATABASE.roles), "--rows", "none.json"]
        ran = subprocess.run([*serve, "--listen", "0.0.0.0:0"], capture_output=True, text=True)
        self.assertIn("need TLS", ran.stderr)
        key, certificate = folder / "tls.key", folder / "tls.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
                        "-out", certificate], check=True, capture_output=True)
        (folder / "tls.json").write_text('{"window_start": 0, "window_end": 1000, "n": 7, "status": "ok"}\n')
        database = Database(folder / "with-tls", "--rows", str(folder / "tls.json"), "--tls-certificate",
                            str(certificate), "--tls-key", str(key))
        try:
            login = {"host": "localhost", "port": database.port, "user": "ann", "dbname": "alpheus",
                     "password": database.passwords["ann"], "sslmode": "verify-full", "sslrootcert": certificate}
            with psycopg.connect(**login, channel_binding="require") as connection:
                self.assertEqual(connection.execute("SELECT n FROM tls").fetchall(), [(7,)])
            options = {"username": "ann", "password": database.passwords["ann"],
                       "adbc.flight.sql.client_option.tls_root_certs": certificate.read_text()}
            port = database.flight.rsplit(":")[-1]
            with flight_sql.connect(f"grpc+tls://localhost:{port}", db_kwargs=options, autocommit=True) as connection:
                self.assertEqual(pandas.read_sql("SELECT n FROM tls", connection).n.tolist(), [7])
        finally:
            database.process.end()


def commands_of(part):
    """The commands of a guide's part, with what is written into files."""
    commands = []
    for block in part.split("```console\n")[1:]:
        ends_with = None
        for line in block.split("\n```")[0].splitlines():
            if ends_with:
                commands[-1] += "\n" + line
                ends_with = None if line == ends_with else ends_with
            elif line.startswith("$ "):
                commands.append(line[2:])
                ends_with = "END" if line.endswith("<<END") else None
    return commands


PROJECT = {
    "dbt_project.yml": 'name: meters\nversion: "1.0"\nprofile: alpheus\n',
    "profiles.yml": """alpheus:
  target: results
  outputs:
    results:
      { type: postgres, host: 127.0.0.1, port: PORT, user: ann, dbname: alpheus, schema: ann, threads: 2,
        password: "{{ env_var('PGPASSWORD') }}" }
""",
    "seeds/places.csv": "meter,place\nm0,attic\nm1,cellar\n",
    "models/all.yml": """version: 2
sources:
  - { name: released, database: alpheus, schema: released, tables: [{ name: load }] }
models:
  - { name: hourly, columns: [{ name: hour, data_tests: [not_null, unique] }] }
""",
    "models/checked.sql": """{{ config(materialized='view') }}
select * from {{ source('released', 'load') }} where checked and status = 'ok'
""",
    "models/hourly.sql": """{{ config(materialized='table') }}
select date_trunc('hour', window_start) as hour, sum(sum_load) as load from {{ ref('checked') }} group by 1
""",
}


if __name__ == "__main__":
    unittest.main()
