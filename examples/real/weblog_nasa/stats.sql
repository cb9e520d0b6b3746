-- All requests of all hosts, hour by hour. The first bin also takes what is below 0.
CREATE STREAM BytesByHour AS
SELECT SUM(bytes),
       COUNT(bytes),
       AVG(bytes),
       VAR(bytes),
       HISTOGRAM(bytes, EDGES(0, 1, 100, 1000, 5000, 10000, 50000, 100000, 500000, 1000000))
WINDOW TUMBLING (SIZE 1 HOUR)
FROM WebLog;
