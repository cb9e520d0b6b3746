-- Heart rate for each 5 m of altitude; windows add up.
CREATE STREAM HeartRateByAltitude AS
SELECT SUM_BY(heart_rate, altitude_m, 5) AS sum_by_altitude,
       COUNT_BY(heart_rate, altitude_m, 5) AS count_by_altitude
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM Fitness;
