-- How hard everybody is working, every ten seconds.
CREATE STREAM HeartRate AS
SELECT COUNT(heart_rate), AVG(heart_rate), STDDEV(heart_rate)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM FitnessTracker BETWEEN 10 AND 10000;
