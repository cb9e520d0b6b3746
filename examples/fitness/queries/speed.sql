-- How fast people of each region ride, by the hour.
CREATE STREAM Speed AS
SELECT AVG(speed), MEDIAN(speed) AS median_speed, HISTOGRAM(speed, 0, 3, 6)
WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 SECONDS)
FROM FitnessTracker BETWEEN 10 AND 10000
GROUP BY region;
