-- All sensors, hour by hour.
CREATE STREAM SpeedByHour AS
SELECT SUM(speed_mph),
       COUNT(speed_mph),
       AVG(speed_mph),
       VAR(speed_mph),
       HISTOGRAM(speed_mph, 0, 10, 10)
WINDOW TUMBLING (SIZE 1 HOUR)
FROM TrafficSpeed;
