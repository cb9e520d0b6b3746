-- The mean heart rate for each 5 m of altitude, which this schema's policies
-- show in buckets.
CREATE STREAM Climbing AS
SELECT AVG_BY(heart_rate, altitude, 5) AS heart_rate_by_altitude
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM FitnessTracker BETWEEN 10 AND 10000;
