-- Vibration across the fleet, day by day.
CREATE STREAM Vibration AS
SELECT HISTOGRAM(vibration_velocity), HISTOGRAM(vibration_displacement), HISTOGRAM(vibration_acceleration),
       PERCENTILE(sound_pressure, 0.95) AS loud
WINDOW TUMBLING (SIZE 1 DAY)
FROM CarSensors BETWEEN 100 AND 10000;
