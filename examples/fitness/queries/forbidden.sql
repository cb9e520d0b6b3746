-- Refused: altitude is seen in 5 m buckets only, and its mean is no bucket.
CREATE STREAM MeanAltitude AS
SELECT AVG(altitude)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM FitnessTracker BETWEEN 10 AND 10000;
