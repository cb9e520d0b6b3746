-- Everybody on the road, ten seconds at a time.
CREATE STREAM FitnessStatistics AS
SELECT SUM(heart_rate),
       COUNT(heart_rate),
       AVG(heart_rate),
       VAR(heart_rate),
       HISTOGRAM(heart_rate, 0, 20, 10),
       SUM(altitude_m),
       COUNT(altitude_m),
       AVG(altitude_m),
       VAR(altitude_m),
       HISTOGRAM(altitude_m, 0, 300, 10),
       SUM(speed_mps),
       COUNT(speed_mps),
       AVG(speed_mps),
       VAR(speed_mps),
       HISTOGRAM(speed_mps, 0, 2, 10)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM Fitness;
