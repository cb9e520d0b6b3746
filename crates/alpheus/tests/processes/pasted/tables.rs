//! Examples of verifiable tables.

use super::Step::{self, Own, Runs, Serves};

pub(super) const STEPS: &[Step] = &[
    Own("alpheus ca init pki
         alpheus ca issue pki --role server --name service
         alpheus ca issue pki --role owner --name ada
         cat > schema.yaml <<END
name: Street
time: { column: timestamp }
groups: [street]
columns:
  - { name: bicycles, min: 0, max: 10000 }
  - { name: cars, min: 0, max: 10000, squares: true }
  - { name: trucks, min: 0, max: 10000, squares: true, optional: true }
pairs: [[trucks, cars]]
END
         sed 's/^pairs:/  - { name: vans, min: 0, max: 100, optional: true }\\n&/' schema.yaml > wider.yaml
         awk 'BEGIN {
           print \"timestamp,street,bicycles,cars,trucks\"
           for (h = 0; h < 200; h++) printf \"%d,south,%d,%d,%d\\n\", 1367366400 + 3600 * h, h % 31, h % 900, h % 9
         }' > counts.csv
         awk -F, 'NR == 1 { print; next } { printf \"%d,north,%s,%s,%s\\n\", $1, $3, $4, $5 }' counts.csv | gzip > counts.csv.gz
         printf 'timestamp,street,bicycles,cars,trucks\\n1367366400,south,4,128,20\\n' > fixes.csv
         echo 'SELECT MEAN(cars);' > stats.sql
         echo 'SELECT SUM(cars) GROUP BY DAY(timestamp);' > daily.sql
         cp counts.csv.gz meters.csv.gz"),
    Serves("alpheus table serve", "serving at "),
    Runs("alpheus table create"),
    Own("cp ada/table.key table.key"),
    Runs("alpheus table append counts.csv --identity"),
    Runs("alpheus table append counts.csv.gz"),
    Runs("alpheus table query 'SELECT MEAN(cars), REGRESSION"),
    Runs("alpheus table query 'SELECT MEAN(cars), VAR"),
    // This one is for whom variables name the rest.
    Runs("alpheus table query \"SELECT SUM(cars) WHERE day"),
    Runs("alpheus table query 'EXPLAIN"),
    Runs("alpheus table query --file"),
    Runs("alpheus table verify"),
    Runs("alpheus table correct fixes.csv --identity"),
    Runs("alpheus table correct fixes.csv --rewrite"),
    Runs("alpheus table merge --identity"),
    Runs("alpheus table merge --below"),
    Runs("cp -r ada ada.backup && alpheus table prune"),
    Runs("alpheus table rekey --into ada-2 --identity"),
    Own("rm -r ada-2"),
    Runs("alpheus table rekey --into ada-2 --schema"),
    Own("mv ada ada.lost"),
    Runs("alpheus table recover --key table.key --identity"),
    Own("rm -r ada"),
    Runs("alpheus table recover --key table.key --at-least"),
    Runs("alpheus table drop"),
    Runs("alpheus table replay --schema schema.yaml --input counts.csv"),
    Own("rm out.json"),
    Runs("alpheus table replay --schema schema.yaml --input meters.csv.gz"),
];
