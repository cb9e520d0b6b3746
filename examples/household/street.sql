-- What the street draws, every ten seconds.
CREATE STREAM Street AS
SELECT SUM(power), AVG(power), HISTOGRAM(power, 0, 500, 10), COUNT(power)
WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 2 SECONDS)
FROM Household BETWEEN 2 AND 1000;
