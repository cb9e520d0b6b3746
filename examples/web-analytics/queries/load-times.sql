-- How long each page takes, mean and variance, by the hour.
CREATE STREAM LoadTimes AS
SELECT AVG_BY(load_time, page_view) AS mean_load_time,
       VAR_BY(load_time, page_view) AS variance_of_load_time
WINDOW TUMBLING (SIZE 1 HOUR)
FROM PageVisit BETWEEN 10 AND 10000;
